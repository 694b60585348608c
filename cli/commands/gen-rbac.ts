/**
 * `shipmate gen rbac FILE`: account, roles and bindings for the operators that a module exports, from what they declare that they watch and write.
 */
import type { Command } from 'commander'
import { rbacOf, rbacYaml } from '../../controller/toolkit/rbac.ts'
import { Failure } from '../ending.ts'
import { emit, type GeneratedOptions, withOutputOptions } from '../generated.ts'
import { loadModule } from '../module.ts'
import { findProject, leaseOf } from '../project.ts'

interface Options extends GeneratedOptions {
  readonly name?: string | undefined
  readonly namespace?: string | undefined
  readonly lease?: string | undefined
}

export function define(command: Command): void {
  withOutputOptions(command)
    .argument('<file>', 'a module, in TypeScript or JavaScript, that exports operators')
    .option('--name <NAME>', "of the account and its roles (default: shipmate.yaml's, else the lease's)")
    .option('--namespace <NAME>', "where the operator runs (default: shipmate.yaml's, else the name)")
    .option('--lease <NAME>', "of the operator's lease (default: the first operator's name)")
    .action(async (path: string, options: Options) => {
      const exported = await loadModule(path)
      const { file, operators } = exported
      if (operators.length === 0) throw new Failure(`${file} exports no operator`)
      const project = findProject()
      const lease = options.lease ?? leaseOf(exported)
      const name = options.name ?? project?.name ?? lease
      const namespace = options.namespace ?? project?.namespace ?? name
      const files = { 'rbac.yaml': rbacYaml(rbacOf(operators, { lease }), { name, namespace }) }
      emit(files, options, `shipmate gen rbac ${file} --output ${options.output}`)
    })
}
