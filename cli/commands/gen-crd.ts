/**
 * `shipmate gen crd FILE`: the custom resource definitions of the kinds that a module exports, or that its operators are for.
 */
import type { Command } from 'commander'
import { crdFileName } from '../../controller/toolkit/crd/manifest.ts'
import { Failure } from '../ending.ts'
import { emit, type GeneratedOptions, withOutputOptions } from '../generated.ts'
import { loadModule } from '../module.ts'

export function define(command: Command): void {
  withOutputOptions(command)
    .argument('<file>', 'a module, in TypeScript or JavaScript, that exports definitions or operators')
    .action(async (path: string, options: GeneratedOptions) => {
      const { file, definitions } = await loadModule(path)
      if (definitions.length === 0)
        throw new Failure(`${file} exports nothing that defineCustomResource made, and no operator for such a kind`)
      const files = Object.fromEntries(definitions.map(one => [crdFileName(one), one.crdYaml()]))
      emit(files, options, `shipmate gen crd ${file} --output ${options.output}`)
    })
}
