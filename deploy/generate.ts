/**
 * Writes all that is installed on a cluster, from one source: the CRDs from the definitions of Shipmate's kinds, everything else from deploy/source, as plain manifests, as
 * one file and as a Helm chart.
 *
 *   npm run gen
 */
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Lifecycle, Operation, OperationSchedule, StatefulApp } from '../controller/app/kinds.ts'
import { crdFileName } from '../controller/toolkit/crd/manifest.ts'
import { chartFiles } from './source/chart.ts'
import { dashboard } from './source/dashboard.ts'
import { plainFiles } from './source/plain.ts'

const kinds = [Lifecycle, StatefulApp, Operation, OperationSchedule]

/** These have nothing but generated files in them. */
export const generatedFolders = ['crds', 'manifests', 'components', 'chart', 'grafana']

/** The text of every generated file, by its path from this folder. */
export function generated(): Record<string, string> {
  const crds = Object.fromEntries(kinds.map(kind => [crdFileName(kind), kind.crdYaml()]))
  const paths = Object.fromEntries(Object.entries(crds).map(([name, text]) => [join('crds', name), text]))
  const chart = Object.entries(chartFiles(crds)).map(([name, text]) => [join('chart', name), text])
  return {
    ...paths,
    ...plainFiles(paths),
    ...Object.fromEntries(chart),
    'grafana/shipmate.json': `${JSON.stringify(dashboard, null, 2)}\n`,
  }
}

if (import.meta.main) {
  for (const folder of generatedFolders) await rm(join(import.meta.dirname, folder), { recursive: true, force: true })
  for (const [path, text] of Object.entries(generated())) {
    const file = join(import.meta.dirname, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
    console.log(join('deploy', path))
  }
}
