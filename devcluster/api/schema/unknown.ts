/** The fields of a value that its schema does not know, by path: what `fieldValidation` warns of or refuses. */
import { walk } from './prune.ts'
import type { Schema } from './schema.ts'

/** As a server tells them: those of metadata first, then the others by path, those of embedded metadata last. */
export function findUnknown(schema: Schema, value: unknown): string[] {
  const found: string[] = []
  walk({ schema, isRoot: true, keeps: false }, value, '', found)
  const place = (path: string) => (path.startsWith('metadata.') ? 0 : path.includes('.metadata.') ? 2 : 1)
  return found.sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1))
}
