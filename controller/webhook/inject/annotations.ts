/**
 * What the labels and annotations of a pod template ask of injection. Pure.
 *
 * Guarantee: a name under shipmate.dev/ that nobody reads, or a value that means nothing, is found, with the nearest right one; nothing is guessed.
 */
import { shown, suggestion } from '../../../shared/nearest.ts'
import { appMark, appUidLabel, lifecycleLabel, portAnnotation } from '../../app/workload/marks.ts'
import { hashAnnotation, makerAnnotation } from '../../toolkit/hash.ts'
import { amountOf } from './quantity.ts'
import type { Metadata } from './template.ts'

const prefix = 'shipmate.dev/'

/** The annotations that injection reads. docs/inject.md says what each does. */
export const annotationNames = {
  inject: `${prefix}inject`,
  app: appMark,
  imageOf: `${prefix}image-of`,
  image: `${prefix}image`,
  volumes: `${prefix}volumes`,
  requests: `${prefix}requests`,
  limits: `${prefix}limits`,
  runAsUser: `${prefix}run-as-user`,
  shareProcessNamespace: `${prefix}share-process-namespace`,
  nativeSidecar: `${prefix}native-sidecar`,
} as const

/** Written by injection: its version, and the grace period that the pod had before, in seconds. */
export const injectedAnnotation = `${prefix}injected`
export const ownGraceAnnotation = `${prefix}own-grace-period`

const written = [injectedAnnotation, ownGraceAnnotation, portAnnotation, hashAnnotation, makerAnnotation]
const knownAnnotations = new Set<string>([...Object.values(annotationNames), ...written])
const knownLabels = new Set<string>([lifecycleLabel, appMark, appUidLabel])

/** `NAME`: as the application mounts it. `NAME=PATH`, `NAME=PATH:ro`: there. */
export interface WishedVolume {
  readonly name: string
  readonly path?: string | undefined
  readonly readOnly: boolean
}

export interface Asked {
  /** Undefined: nothing is. */
  readonly lifecycle: string | undefined
  readonly inject: boolean
  readonly app: string | undefined
  /** The container whose image the sidecar uses. */
  readonly imageOf: string | undefined
  /** The image to use in the stead of the default one. */
  readonly image: string | undefined
  /** Undefined: the default ones. */
  readonly volumes: readonly WishedVolume[] | undefined
  readonly requests: Readonly<Record<string, string>>
  readonly limits: Readonly<Record<string, string>>
  readonly runAsUser: number | undefined
  readonly shareProcessNamespace: boolean
  /** Undefined: as the cluster has it. */
  readonly nativeSidecar: boolean | undefined
}

/** @param problems gets a sentence for each that is wrong */
export function askedOf({ labels = {}, annotations = {} }: Metadata, problems: string[]): Asked {
  for (const label of unknownOf(labels, knownLabels)) {
    const instead = knownAnnotations.has(label) ? '; it is an annotation' : suggestion(label, knownLabels)
    problems.push(`label ${label} is not known${instead}`)
  }
  for (const annotation of unknownOf(annotations, knownAnnotations)) {
    const readable = Object.values(annotationNames)
    const instead = annotation === lifecycleLabel ? '; it is a label' : suggestion(annotation, readable)
    problems.push(`annotation ${annotation} is not known${instead}`)
  }
  const reader = { annotations, problems }
  const lifecycle = labels[lifecycleLabel]
  if (lifecycle !== undefined && !objectName.test(lifecycle))
    problems.push(`label ${lifecycleLabel} is ${shown(lifecycle)}: it has to be the name of a Lifecycle`)
  const app = annotations[annotationNames.app] ?? labels[appMark]
  return {
    lifecycle,
    app,
    inject: yesOrNo(reader, annotationNames.inject) ?? true,
    imageOf: nonEmpty(reader, annotationNames.imageOf, 'the name of a container'),
    image: nonEmpty(reader, annotationNames.image, 'the name of an image'),
    volumes: volumesIn(reader),
    requests: amountsIn(reader, annotationNames.requests),
    limits: amountsIn(reader, annotationNames.limits),
    runAsUser: userIn(reader),
    shareProcessNamespace: yesOrNo(reader, annotationNames.shareProcessNamespace) ?? false,
    nativeSidecar: yesOrNo(reader, annotationNames.nativeSidecar),
  }
}

interface Reader {
  readonly annotations: Readonly<Record<string, string>>
  readonly problems: string[]
}

const objectName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

function unknownOf(texts: Readonly<Record<string, string>>, known: ReadonlySet<string>): string[] {
  return Object.keys(texts).filter(key => key.startsWith(prefix) && !known.has(key))
}

function refuse({ annotations, problems }: Reader, name: string, wanted: string): undefined {
  problems.push(`annotation ${name} is ${shown(annotations[name])}: it has to be ${wanted}`)
}

function yesOrNo(reader: Reader, name: string): boolean | undefined {
  const text = reader.annotations[name]
  if (text === undefined) return undefined
  if (text === 'true' || text === 'false') return text === 'true'
  return refuse(reader, name, '"true" or "false"')
}

function nonEmpty(reader: Reader, name: string, wanted: string): string | undefined {
  const text = reader.annotations[name]
  return text === undefined || /^\S+$/.test(text) ? text : refuse(reader, name, wanted)
}

function userIn(reader: Reader): number | undefined {
  const text = reader.annotations[annotationNames.runAsUser]
  if (text === undefined) return undefined
  return /^\d{1,10}$/.test(text) && Number(text) < 2 ** 31
    ? Number(text)
    : refuse(reader, annotationNames.runAsUser, 'the number of a user, as "999"')
}

/** A list with commas; an empty text has none. */
function listOf(text: string): string[] {
  return text.trim() === '' ? [] : text.split(',').map(item => item.trim())
}

function volumesIn(reader: Reader): WishedVolume[] | undefined {
  const text = reader.annotations[annotationNames.volumes]
  return text === undefined
    ? undefined
    : listOf(text).flatMap((item): WishedVolume[] => {
        const [, name, , path, readOnly] = /^([a-z0-9][-a-z0-9]*)(=(\/[^:,]*[^:,/])(:ro)?)?$/.exec(item) ?? []
        if (name !== undefined) return [{ name, path, readOnly: readOnly !== undefined }]
        refuse(
          reader,
          annotationNames.volumes,
          'names of volumes with commas between them, each as NAME, NAME=/PATH or NAME=/PATH:ro',
        )
        return []
      })
}

const countable = ['cpu', 'memory', 'ephemeral-storage']

function amountsIn(reader: Reader, name: string): Record<string, string> {
  const items = listOf(reader.annotations[name] ?? '').map(item => item.split('=') as [string, string?])
  const wrong = items.find(([resource, amount, more]: readonly (string | undefined)[]) => {
    return more !== undefined || amountOf(amount ?? '') === undefined || !countable.includes(resource ?? '')
  })
  if (!wrong) return Object.fromEntries(items)
  const [resource] = wrong
  const meant = countable.includes(resource) ? '' : suggestion(resource, countable)
  refuse(reader, name, `as "cpu=50m,memory=128Mi"${meant}`)
  return {}
}
