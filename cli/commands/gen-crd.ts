/**
 * `shipmate gen crd FILE`: the custom resource definitions of the kinds that a module exports, or that its operators are for.
 */
import type { Command } from 'commander'
import { crdFileName } from '../../controller/toolkit/crd/manifest.ts'
import { Failure } from '../ending.ts'
import { emit, type GeneratedOptions, withOutputOptions } from '../generated.ts'
import { loadModule } from '../module.ts'
import { findProject } from '../project.ts'
import { webhookPlace } from '../webhooks.ts'

export function define(command: Command): void {
  withOutputOptions(command)
    .argument('<file>', 'a module, in TypeScript or JavaScript, that exports definitions or operators')
    .action(async (path: string, options: GeneratedOptions) => {
      const { file, definitions, lease } = await loadModule(path)
      if (definitions.length === 0)
        throw new Failure(`${file} exports nothing that defineCustomResource made, and no operator for such a kind`)
      // Only a conversion has a place.
      const project = findProject()
      const place = project && lease !== undefined ? webhookPlace(lease, project.namespace) : undefined
      const files = Object.fromEntries(definitions.map(one => [crdFileName(one), one.crdYaml(place)]))
      emit(files, options, `shipmate gen crd ${file} --output ${options.output}`)
    })
}
