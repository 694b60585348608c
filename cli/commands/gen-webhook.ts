/**
 * `shipmate gen webhook FILE`: the Service and the registrations of the webhooks of the kinds that a module exports, or that its operators are for.
 */
import type { Command } from 'commander'
import { stringify } from 'yaml'
import { Failure } from '../ending.ts'
import { emit, type GeneratedOptions, withOutputOptions } from '../generated.ts'
import { loadModule } from '../module.ts'
import { findProject, leaseOf } from '../project.ts'
import { hooksOf, registrationManifests, serviceOf } from '../webhooks.ts'

interface Options extends GeneratedOptions {
  readonly name?: string | undefined
  readonly namespace?: string | undefined
  readonly lease?: string | undefined
}

export function define(command: Command): void {
  withOutputOptions(command)
    .argument('<file>', 'a module, in TypeScript or JavaScript, that exports definitions or operators')
    .option(
      '--name <NAME>',
      "of the operator's Deployment, whose pods serve them (default: shipmate.yaml's, else the lease's)",
    )
    .option('--namespace <NAME>', "where the operator runs (default: shipmate.yaml's, else the name)")
    .option(
      '--lease <NAME>',
      "of the operator's lease, after which they are named (default: the first operator's name)",
    )
    .action(async (path: string, options: Options) => {
      const exported = await loadModule(path)
      const { file, definitions } = exported
      const hooks = hooksOf(definitions)
      if (hooks.length === 0) throw new Failure(`${file} exports no definition with default, validate or convert`)
      const project = findProject()
      const lease = options.lease ?? leaseOf(exported)
      const name = options.name ?? project?.name ?? lease
      const namespace = options.namespace ?? project?.namespace ?? name
      const place = { name, namespace }
      const objects = [serviceOf(place, lease), ...registrationManifests(place, lease, hooks)]
      const documents = objects.map(({ object }) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false }))
      const header = '# Generated from what the definitions declare: shipmate gen webhook. Do not edit.\n'
      emit(
        { 'webhooks.yaml': header + documents.join('---\n') },
        options,
        `shipmate gen webhook ${file} --output ${options.output}`,
      )
    })
}
