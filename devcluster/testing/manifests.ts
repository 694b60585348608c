/**
 * What a test applies: an object, a list of them, or a file of YAML or JSON.
 */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Client } from '../../controller/kube/client.ts'
import { createDiscovery, type Discovery } from '../../controller/kube/discovery.ts'
import { NotFound } from '../../controller/kube/errors.ts'
import type { Applied, Kind } from '../../controller/kube/kind.ts'
import { CustomResourceDefinition } from '../../controller/kube/kinds.ts'

/** An object as it stands in a file. */
export interface Manifest {
  readonly apiVersion?: string | undefined
  readonly kind?: string | undefined
  readonly metadata?: { readonly name?: string | undefined; readonly namespace?: string | undefined } | undefined
}

/** A text is the path of a file. */
export type Manifests = Manifest | readonly Manifest[] | string | URL

export async function readManifests(given: Manifests): Promise<Manifest[]> {
  if (typeof given !== 'string' && !(given instanceof URL)) return [given].flat().flatMap(itemsOf)
  const path = given instanceof URL ? fileURLToPath(given) : given
  return parseManifests(await readFile(path, 'utf8'), path)
}

export async function parseManifests(text: string, path: string): Promise<Manifest[]> {
  const { parseAllDocuments } = await import('yaml')
  const documents = parseAllDocuments(text)
  return [documents].flat().flatMap(document => {
    const [error] = document.errors
    if (error) throw new Error(`${path}: ${error.message}`)
    const value = document.toJS() as Manifest | null
    return value === null ? [] : itemsOf(value)
  })
}

/** A List counts as its items. */
function itemsOf(manifest: Manifest & { readonly items?: readonly Manifest[] }): Manifest[] {
  return manifest.kind?.endsWith('List') && manifest.items ? [...manifest.items] : [manifest]
}

/** Definitions and namespaces before what needs them. */
export function inOrder(manifests: readonly Manifest[]): Manifest[] {
  const first = ['CustomResourceDefinition', 'Namespace', 'ServiceAccount']
  const place = ({ kind = '' }: Manifest) => (first.includes(kind) ? first.indexOf(kind) : first.length)
  return manifests.toSorted((a, b) => place(a) - place(b))
}

export interface Applying {
  apply(manifest: Manifest): Promise<{ readonly kind: Kind; readonly object: Manifest }>
  kindOf(manifest: Manifest): Promise<Kind>
}

/** @param pause waits a little */
export function applying(client: Client, pause: () => Promise<void>): Applying {
  let discovery: Discovery = createDiscovery(client, { retryAfter: 0 })

  async function kindOf(manifest: Manifest): Promise<Kind> {
    const { apiVersion, kind } = manifest
    try {
      return await discovery.kindOfObject({ ...(apiVersion && { apiVersion }), ...(kind && { kind }) })
    } catch (error) {
      if (!(error instanceof NotFound)) throw error
      // It may have been defined a moment ago.
      discovery = createDiscovery(client, { retryAfter: 0 })
      await pause()
      return discovery.kindOfObject({ ...(apiVersion && { apiVersion }), ...(kind && { kind }) })
    }
  }

  return {
    kindOf,
    async apply(manifest) {
      const kind = await kindOf(manifest)
      const object = (await client.apply(kind, manifest as Applied, { fieldValidation: 'Strict' })) as Manifest
      if (kind.plural === CustomResourceDefinition.plural && kind.group === CustomResourceDefinition.group)
        await untilServed(client, manifest, pause)
      return { kind, object }
    },
  }
}

/** Until objects of a definition's kind can be listed. */
async function untilServed(client: Client, manifest: Manifest, pause: () => Promise<void>): Promise<void> {
  const { spec } = manifest as unknown as {
    spec: {
      group: string
      names: { kind: string; plural: string }
      scope: string
      versions: { name: string; served: boolean }[]
    }
  }
  const version = spec.versions.find(({ served }) => served)?.name
  if (!version) return
  const kind = { group: spec.group, version, ...spec.names, namespaced: spec.scope === 'Namespaced' }
  for (let tries = 0; ; tries++) {
    try {
      await client.list(kind)
      return
    } catch (error) {
      if (!(error instanceof NotFound) || tries === 200) throw error
      await pause()
    }
  }
}
