/**
 * Custom objects between the versions of their definition: by a webhook, where it says so; else only the name of the version changes.
 */
import { randomUUID } from 'node:crypto'
import { internal } from '../problems.ts'
import type { Obj, ResourceType } from '../types.ts'
import { call, type Locate } from './call.ts'
import type { ClientConfig } from './match.ts'

export interface ConversionSource {
  /** The CustomResourceDefinition with this uid. */
  definition(uid: string): Obj | undefined
  readonly locate: Locate
}

interface Answer {
  response?: { uid?: string; convertedObjects?: Obj[]; result?: { status?: string; message?: string } }
}

export async function converted(
  source: ConversionSource,
  objects: readonly Obj[],
  type: ResourceType,
  version: string,
): Promise<readonly Obj[]> {
  const apiVersion = type.group ? `${type.group}/${version}` : version
  const conversion = type.custom ? source.definition(type.custom)?.spec.conversion : undefined
  const config: ClientConfig | undefined =
    conversion?.strategy === 'Webhook' ? conversion.webhook?.clientConfig : undefined
  const others = objects.filter(object => object.apiVersion !== apiVersion)
  if (!config || others.length === 0)
    return objects.map(object => (object.apiVersion === apiVersion ? object : { ...object, apiVersion }))
  const made = await byWebhook(source, config, others, apiVersion, type)
  return objects.map(object => (object.apiVersion === apiVersion ? object : (made.shift() as Obj)))
}

async function byWebhook(
  source: ConversionSource,
  config: ClientConfig,
  objects: readonly Obj[],
  apiVersion: string,
  type: ResourceType,
): Promise<Obj[]> {
  const uid = randomUUID()
  const body = {
    kind: 'ConversionReview',
    apiVersion: 'apiextensions.k8s.io/v1',
    request: { uid, desiredAPIVersion: apiVersion, objects },
  }
  const what = `conversion webhook for ${objects[0]?.apiVersion}, Kind=${type.kind} failed`
  const signal = new AbortController().signal
  const { response } = (await call({ config, body, timeout: 30_000, signal }, source.locate).catch(error => {
    throw internal(`${what}: ${error.message}`)
  })) as Answer
  if (response?.uid !== uid) throw internal(`${what}: the answer is to another request`)
  if (response.result?.status !== 'Success') throw internal(`${what}: ${response.result?.message ?? 'it says nothing'}`)
  const made = response.convertedObjects ?? []
  if (made.length !== objects.length || made.some(object => object.apiVersion !== apiVersion)) {
    throw internal(`${what}: expected ${objects.length} objects of ${apiVersion}`)
  }
  // A webhook may change labels and annotations of metadata, nothing else.
  return made.map((object, at) => {
    const { labels, annotations } = object.metadata
    const { labels: _, annotations: __, ...metadata } = (objects[at] as Obj).metadata
    return {
      ...object,
      metadata: { ...metadata, ...(labels ? { labels } : {}), ...(annotations ? { annotations } : {}) },
    }
  })
}
