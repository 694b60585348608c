/**
 * Writes what follows from the definitions of Shipmate's kinds: their CRDs.
 *
 *   npm run gen
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Lifecycle, Operation, OperationSchedule, StatefulApp } from '../controller/app/kinds.ts'
import { crdFileName } from '../controller/toolkit/crd/manifest.ts'

const kinds = [Lifecycle, StatefulApp, Operation, OperationSchedule]

/** The text of every generated file, by its path from this folder. */
export function generated(): Record<string, string> {
  return Object.fromEntries(kinds.map(kind => [join('crds', crdFileName(kind)), kind.crdYaml()]))
}

if (import.meta.main) {
  for (const [path, text] of Object.entries(generated())) {
    const file = join(import.meta.dirname, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
    console.log(join('deploy', path))
  }
}
