/**
 * `shipmate operator manifests`: all that deploy would apply, as YAML, for who applies it in another way.
 */
import type { Command } from 'commander'
import { stringify } from 'yaml'
import { manifestsOf } from '../manifests.ts'
import { readProject } from '../project.ts'

export function define(command: Command): void {
  command.action(async () => {
    const project = readProject()
    const manifests = manifestsOf(project, await project.load())
    const documents = manifests.map(({ object }) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false }))
    const header = '# Generated from the code and shipmate.yaml: shipmate operator manifests. Do not edit.\n'
    process.stdout.write(header + documents.join('---\n'))
  })
}
