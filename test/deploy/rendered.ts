/**
 * What stands in deploy/ as kubectl and helm make objects of it, and these by their names.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { onTestFinished } from 'vitest'
import { parseAllDocuments } from 'yaml'
import type { Values } from '../../deploy/source/values.ts'
import { helm, kubeVersion } from '../fixtures/helm.ts'

export const folder = join(import.meta.dirname, '../../deploy')

export interface Rendered {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    name: string
    namespace?: string
    annotations?: Record<string, string>
    labels: Record<string, string>
  }
  // biome-ignore lint/suspicious/noExplicitAny: objects of any kind.
  readonly [field: string]: any
}

/** What a user gives: some of the values. */
export type Given = { readonly [K in keyof Values]?: Partial<Values[K]> | Values[K] }

export function documents(text: string): Rendered[] {
  return parseAllDocuments(text).flatMap(document => document.toJS() ?? [])
}

/** Each under its kind, namespace and name; two of the same are a mistake. */
export function byName(all: readonly object[]): Record<string, Rendered> {
  const named = (all as Rendered[]).map(
    one => [`${one.kind} ${one.metadata.namespace ?? ''}/${one.metadata.name}`, one] as const,
  )
  if (new Set(named.map(([name]) => name)).size < named.length) throw new Error('two objects have the same name')
  return Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1)))
}

export function newFolder(): string {
  const made = mkdtempSync(join(tmpdir(), 'shipmate-deploy-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

export async function chart(values: Given = {}, args: readonly string[] = []): Promise<Rendered[]> {
  const home = newFolder()
  const file = join(home, 'values.json')
  writeFileSync(file, JSON.stringify(values))
  const all = [
    'template',
    'shipmate',
    join(folder, 'chart'),
    '-n',
    'shipmate-system',
    '-f',
    file,
    ...kubeVersion,
    ...args,
  ]
  return documents(await helm(all, { home }))
}

/** A kustomization that stands on ours, with some of its components. */
export function overlay(names: readonly string[], files: Readonly<Record<string, object>> = {}): string {
  const made = newFolder()
  // kustomize takes relative paths alone.
  const ours = relative(made, folder)
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: [ours, ...Object.keys(files)],
    components: names.map(name => join(ours, 'components', name)),
  }
  for (const [name, object] of Object.entries({ 'kustomization.yaml': kustomization, ...files }))
    writeFileSync(join(made, name), JSON.stringify(object))
  return made
}
