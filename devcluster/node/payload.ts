/**
 * The files that a volume of config maps, secrets, tokens or fields shows, worked out from the objects. Pure.
 */
import { fieldOf, type Place, resourceOf } from './downward.ts'
import type { Objects } from './environment.ts'
import type { Pod, Volume } from './spec.ts'

export interface File {
  readonly content: Buffer
  readonly mode: number
}

/** By path in the volume. */
export type Files = ReadonlyMap<string, File>

export interface TokenWish {
  readonly audience: string | undefined
  readonly seconds: number
}

export interface Sources extends Objects {
  /** A token of the pod's service account; undefined while there is none. */
  token(wish: TokenWish): string | undefined
}

/** What is missing is named as the kubelet's FailedMount event does. */
export type Payload = { readonly files: Files } | { readonly missing: string }

type Items = readonly { readonly key: string; readonly path: string; readonly mode?: number | undefined }[] | undefined

/** Whether a volume's files come from objects. */
export function isPayload(volume: Volume): boolean {
  return Boolean(volume.configMap ?? volume.secret ?? volume.projected ?? volume.downwardAPI)
}

/** The tokens that a pod's volumes ask for. */
export function tokensOf(volumes: readonly Volume[]): TokenWish[] {
  const sources = volumes.flatMap(({ projected }) => projected?.sources ?? [])
  return sources.flatMap(({ serviceAccountToken: token }) =>
    token ? [{ audience: token.audience, seconds: token.expirationSeconds ?? 3600 }] : [],
  )
}

class Missing extends Error {}

export function payloadOf(pod: Pod, volume: Volume, place: Place, sources: Sources): Payload {
  const namespace = pod.metadata.namespace ?? ''
  const files = new Map<string, File>()
  const put = (path: string, content: Buffer | string, mode: number) =>
    void files.set(path, { content: Buffer.from(content), mode })

  const take = (
    data: ReadonlyMap<string, Buffer>,
    items: Items,
    mode: number,
    what: string,
    optional: boolean | undefined,
  ) => {
    if (!items) for (const [name, content] of data) put(name, content, mode)
    for (const { key, path, mode: own = mode } of items ?? []) {
      const content = data.get(key)
      if (content) put(path, content, own)
      else if (!optional) throw new Missing(`${what} references non-existent ${what.split(' ')[0]} key: ${key}`)
    }
  }
  const map = (name: string, items: Items, mode: number, optional: boolean | undefined) => {
    const object = sources.configMap(namespace, name)
    if (object)
      take(
        new Map([...decoded(object.data, 'utf8'), ...decoded(object.binaryData, 'base64')]),
        items,
        mode,
        'configmap',
        optional,
      )
    else if (!optional) throw new Missing(`configmap "${name}" not found`)
  }
  const secret = (name: string, items: Items, mode: number, optional: boolean | undefined) => {
    const object = sources.secret(namespace, name)
    if (object) take(new Map(decoded(object.data, 'base64')), items, mode, 'secret', optional)
    else if (!optional) throw new Missing(`secret "${name}" not found`)
  }
  const fields = (items: NonNullable<Volume['downwardAPI']>['items'], mode: number) => {
    for (const { path, fieldRef, resourceFieldRef, mode: own = mode } of items ?? []) {
      const text = fieldRef
        ? fieldOf(pod, fieldRef.fieldPath, place)
        : resourceFieldRef && resourceOf(pod, undefined, resourceFieldRef, place)
      if (text === undefined) throw new Missing(`the field of ${path} is not supported`)
      put(path, text, own)
    }
  }

  try {
    const { configMap, secret: secretVolume, downwardAPI, projected } = volume
    if (configMap) map(configMap.name ?? '', configMap.items, configMap.defaultMode ?? 0o644, configMap.optional)
    if (secretVolume)
      secret(
        secretVolume.secretName ?? '',
        secretVolume.items,
        secretVolume.defaultMode ?? 0o644,
        secretVolume.optional,
      )
    if (downwardAPI) fields(downwardAPI.items, downwardAPI.defaultMode ?? 0o644)
    const mode = projected?.defaultMode ?? 0o644
    for (const source of projected?.sources ?? []) {
      if (source.configMap) map(source.configMap.name ?? '', source.configMap.items, mode, source.configMap.optional)
      if (source.secret) secret(source.secret.name ?? '', source.secret.items, mode, source.secret.optional)
      if (source.downwardAPI) fields(source.downwardAPI.items, mode)
      if (source.serviceAccountToken) {
        const { audience, expirationSeconds: seconds = 3600, path } = source.serviceAccountToken
        const token = sources.token({ audience, seconds })
        if (token === undefined) throw new Missing('there is no token of the service account yet')
        put(path, token, 0o600)
      }
    }
    return { files }
  } catch (error) {
    if (error instanceof Missing) return { missing: error.message }
    throw error
  }
}

function decoded(data: Readonly<Record<string, string>> | undefined, encoding: BufferEncoding): [string, Buffer][] {
  return Object.entries(data ?? {}).map(([name, text]) => [name, Buffer.from(text, encoding)])
}
