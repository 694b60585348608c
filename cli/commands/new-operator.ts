/**
 * `shipmate new operator NAME`: a project of an operator, from the templates in cli/templates/operator. It builds, tests and runs as it is.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import type { Command } from 'commander'
import { Liquid } from 'liquidjs'
import { defineKind } from '../../controller/kube/kind.ts'
import * as kinds from '../../controller/kube/kinds.ts'
import { checkNames } from '../../controller/toolkit/crd/names.ts'
import { messageOf } from '../../shared/errors.ts'
import { Misuse } from '../ending.ts'
import { type Files, tell, writeNew } from '../files.ts'
import { manifest, packageFolder } from '../package.ts'
import { dnsLabel, registryName } from '../project.ts'
import { kebab, pascal } from '../words.ts'

interface Options {
  readonly kind?: string | undefined
  readonly group: string
  readonly version: string
  readonly registry: string
  readonly path?: string | undefined
  readonly shipmate?: string | undefined
}

export function define(command: Command): void {
  command
    .argument('<name>', 'of the operator, its image and all it has on the cluster: memcached-operator')
    .option('--kind <KIND>', 'of its custom resource (default: from the name: Memcached)')
    .option('--group <GROUP>', 'of its custom resource: a domain of yours', 'example.com')
    .option('--version <VERSION>', 'of its custom resource', 'v1alpha1')
    .option('--registry <REGISTRY>', 'where its image is pushed to, such as registry.example.com/team', '')
    .option('--path <DIR>', 'where the project goes (default: a folder with its name)')
    .option('--shipmate <FILE>', 'a packed shipmate (npm pack) to depend on, instead of the published one')
    .action((name: string, options: Options) => {
      const values = valuesOf(name, options)
      const folder = options.path ?? name
      const tarball = options.shipmate
      if (tarball !== undefined && !existsSync(tarball)) throw new Misuse(`there is no file ${tarball}`)
      const written = writeNew(folder, render(values))
      if (tarball !== undefined) {
        mkdirSync(join(folder, 'vendor'), { recursive: true })
        copyFileSync(tarball, join(folder, 'vendor', basename(tarball)))
      }
      tell(written)
      const there = relative('', folder)
      process.stderr.write(
        `next: ${there === '' ? '' : `cd ${there} && `}npm install && npm test; README.md goes on from there\n`,
      )
    })
}

function valuesOf(name: string, options: Options): Record<string, string> {
  const { group, version, registry, shipmate } = options
  if (!dnsLabel.safeParse(name).success)
    throw new Misuse(
      `the name "${name}" has to be lower-case letters, digits and "-", a letter first and no "-" last, at most 50`,
    )
  if (!registryName.safeParse(registry).success)
    throw new Misuse(
      `--registry "${registry}" has to be a registry and perhaps a path in it, such as registry.example.com/team`,
    )
  const kind = options.kind ?? pascal(name.replace(/-?operator$/, '') || name)
  if (Object.hasOwn(kinds, kind)) throw new Misuse(`${kind} is a kind of Kubernetes' own: say another by --kind`)
  const { plural } = defineKind({ group, version, kind })
  try {
    checkNames({ group, version, kind, plural, singular: kind.toLowerCase(), shortNames: [], categories: [] })
  } catch (error) {
    throw new Misuse(messageOf(error))
  }
  const own = manifest()
  const versionOf = (dependency: string) => `^${own.dependencies[dependency] ?? own.devDependencies[dependency]}`
  return {
    ...{ name, kind, group, version, registry, plural },
    sample: kebab(kind),
    node: own.engines.node,
    shipmate: shipmate === undefined ? `^${own.version}` : `file:vendor/${basename(shipmate)}`,
    zod: versionOf('zod'),
    typescript: versionOf('typescript'),
    nodeTypes: versionOf('@types/node'),
    vitest: versionOf('vitest'),
  }
}

const suffix = '.liquid'

function render(values: Record<string, string>): Files {
  const folder = join(packageFolder, 'cli/templates/operator')
  const liquid = new Liquid({ strictVariables: true, strictFilters: true })
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith(suffix))
  return Object.fromEntries(
    names.sort().map(name => {
      const text = liquid.parseAndRenderSync(readFileSync(join(folder, name), 'utf8'), values) as string
      return [name.slice(0, -suffix.length), text]
    }),
  )
}
