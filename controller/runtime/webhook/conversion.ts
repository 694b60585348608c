/**
 * ConversionReview of apiextensions.k8s.io/v1: objects of a CRD from one of its versions to another. Pure, but for the handler.
 *
 * Guarantees: all are converted, in their order, or none, with the object that could not be and why; one that is in the wished version already stays as it is.
 */
import * as z from 'zod/mini'
import { messageOf } from '../../../shared/errors.ts'
import { keyOf, type Live } from '../../kube/kind.ts'
import { firstOf } from './admission.ts'
import { Unreadable } from './body.ts'

export interface ConversionRequest {
  /** As it is stored, or as somebody wrote it. */
  readonly object: Live
  /** The `apiVersion` that is wished: `cache.example.com/v1`. */
  readonly to: string
  readonly signal: AbortSignal
}

const review = z.object({
  apiVersion: z.literal('apiextensions.k8s.io/v1'),
  kind: z.literal('ConversionReview'),
  request: z.object({
    uid: z.string().check(z.minLength(1)),
    desiredAPIVersion: z.string().check(z.minLength(1)),
    objects: z.array(z.looseObject({ apiVersion: z.string(), kind: z.string(), metadata: z.looseObject({}) })),
  }),
})

export interface ConversionAsked {
  readonly uid: string
  readonly to: string
  readonly objects: readonly Live[]
}

/** @throws Unreadable with the first thing that is wrong */
export function conversionRequest(body: unknown): ConversionAsked {
  const { data, error } = review.safeParse(body)
  if (!data) throw new Unreadable(`this is no ConversionReview of apiextensions.k8s.io/v1: ${firstOf(error)}`)
  const { uid, desiredAPIVersion, objects } = data.request
  return { uid, to: desiredAPIVersion, objects: objects as unknown as Live[] }
}

export async function conversionAnswer(
  { uid, to, objects }: ConversionAsked,
  convert: (request: ConversionRequest) => Promise<object>,
  signal: AbortSignal,
): Promise<{ outcome: 'converted' | 'failed'; body: object; error?: unknown }> {
  const respond = (response: object) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'ConversionReview',
    response: { uid, ...response },
  })
  const convertedObjects: object[] = []
  for (const object of objects) {
    try {
      convertedObjects.push(object.apiVersion === to ? object : await convert({ object, to, signal }))
    } catch (error) {
      const name = `${object.kind} ${keyOf({ ...object.metadata, name: object.metadata.name ?? '(without a name)' })}`
      const message = `${name} cannot be converted from ${object.apiVersion} to ${to}: ${messageOf(error)}`
      return { outcome: 'failed', error, body: respond({ result: { status: 'Failure', message } }) }
    }
  }
  return { outcome: 'converted', body: respond({ result: { status: 'Success' }, convertedObjects }) }
}
