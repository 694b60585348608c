/**
 * Objects as a table, as `kubectl get` asks for them.
 */
import type { Json, Meta, Obj, ServedVersion } from '../types.ts'

export interface TableOptions {
  /** What of each object goes with its row. Default `Metadata`. */
  readonly includeObject?: string | undefined
  /** Rows alone: what a watch sends after its first event. */
  readonly headless?: boolean | undefined
  /** An object's metadata, as it is without the rest. Default: as it is. */
  metadataOf?(object: Obj): Meta
  readonly metadata?: { resourceVersion?: string; continue?: string; remainingItemCount?: number } | undefined
}

export interface Table {
  kind: 'Table'
  apiVersion: 'meta.k8s.io/v1'
  metadata: object
  columnDefinitions: object[] | null
  rows: { cells: Json[]; object?: unknown }[]
}

export function tableOf(objects: readonly Obj[], { columns }: ServedVersion, options: TableOptions = {}): Table {
  const definitions = columns.map(({ name, type, format, description, priority }) => ({
    name,
    type,
    format,
    description,
    priority,
  }))
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: options.metadata ?? {},
    columnDefinitions: options.headless ? null : definitions,
    rows: objects.map(object => ({
      cells: columns.map(column => column.cell(object)),
      ...included(object, options),
    })),
  }
}

function included(object: Obj, { includeObject = 'Metadata', metadataOf }: TableOptions): { object?: unknown } {
  if (includeObject === 'None') return {}
  if (includeObject === 'Object') return { object }
  const metadata = metadataOf?.(object) ?? object.metadata
  return { object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata } }
}
