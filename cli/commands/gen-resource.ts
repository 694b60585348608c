/**
 * `shipmate gen resource`: the code of a child resource, with the three places to fill in: what it begins with (`mutateWithInitialData`), what of the
 * custom resource it follows (`mutateWithCR`), and which of its parts count (`getHashableRef`).
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { type Document, isMap, parseAllDocuments, parseDocument } from 'yaml'
import { apiVersionOf, type Kind } from '../../controller/kube/kind.ts'
import { checkNames } from '../../controller/toolkit/crd/names.ts'
import { messageOf } from '../../shared/errors.ts'
import { type ClusterOptions, withCluster, withClusterOptions } from '../cluster.ts'
import {
  builtIn,
  findType,
  fromFile,
  groupName,
  merged,
  served,
  type Type,
  tableOf,
  unknownType,
} from '../dictionary.ts'
import { Failure, Misuse } from '../ending.ts'
import { type Files, tell, writeNew } from '../files.ts'
import { loadModule } from '../module.ts'
import { codeOf, type Parent } from '../resource-code.ts'
import { camel, kebab } from '../words.ts'

interface Options extends ClusterOptions {
  readonly type?: string | undefined
  readonly kind?: string | undefined
  readonly group?: string | undefined
  readonly version?: string | undefined
  readonly path?: string | undefined
  readonly name?: string | undefined
  readonly list?: boolean | undefined
  readonly dictionary?: string | undefined
}

export function define(command: Command): void {
  withClusterOptions(command)
    .argument('[manifest]', 'a YAML file with what it begins with; it becomes a template beside the code')
    .option('--type <TYPE>', "what it is: a kind, plural or short name of the dictionary (default: the manifest's)")
    .option('--kind <KIND>', 'the custom resource whose child it is (default: what definition.ts defines)')
    .option('--group <GROUP>', 'the group of that')
    .option('--version <VERSION>', 'the version of that')
    .option('--path <DIR>', 'where the code goes (default: src, if there is one, else here)')
    .option('--name <NAME>', 'what it is called, where there are several of a type (default: the type)')
    .option('--dictionary <FILE>', 'more types: a list of { type, group, version, kind, plural, namespaced }')
    .option('--list', "print the dictionary: the cluster's types, if there is a cluster, or those built in")
    .action(async (manifest: string | undefined, options: Options) => {
      if (options.list) process.stdout.write(tableOf(await wholeDictionary(options)))
      else tell(await generate(manifest, options))
    })
}

async function generate(manifest: string | undefined, options: Options) {
  const folder = options.path ?? (existsSync('src') ? 'src' : '.')
  const initial = manifest === undefined ? undefined : readManifest(manifest)
  const asked = options.type ?? initial?.type
  if (asked === undefined) throw new Misuse('say what it is, by --type or by a manifest (--list prints the types)')
  const type = await lookUp(asked, options)
  if (initial) checkManifest(initial, type.kind, asked)
  const parent = await parentOf(folder, options)
  const name = kebab(options.name ?? type.kind.kind)
  if (!/^[a-z]/.test(name)) throw new Misuse(`--name "${options.name}" has to begin with a letter`)
  const code = codeOf({ name: camel(name), isNamed: options.name !== undefined, file: name, type, parent, initial })
  const files: Files = {
    [`${name}.ts`]: code,
    ...(initial && { [`${name}.yaml`]: initial.text }),
  }
  return writeNew(folder, files)
}

/** The cluster is asked only for what is not known otherwise. */
async function lookUp(asked: string, options: Options): Promise<Type> {
  const known = merged(builtIn(), options.dictionary === undefined ? [] : fromFile(options.dictionary))
  const found = findType(known, asked)
  if (found) return found
  const whole = await wholeDictionary(options)
  const now = findType(whole, asked)
  if (now) return now
  throw unknownType(whole, asked)
}

async function wholeDictionary(options: Options): Promise<Type[]> {
  const own = options.dictionary === undefined ? [] : fromFile(options.dictionary)
  return merged(builtIn(), await ofCluster(options), own)
}

/** None where there is no cluster, unless one was asked for. */
async function ofCluster(options: Options): Promise<Type[]> {
  try {
    return await withCluster(options, {}, cluster => served(cluster, 5000))
  } catch (error) {
    if (options.context !== undefined || options.kubeconfig !== undefined) throw error
    process.stderr.write(`types are those built in, as no cluster answers: ${messageOf(error)}\n`)
    return []
  }
}

/** The kind whose child it is: what the folder's definition.ts exports, or what the options say. */
async function parentOf(folder: string, { kind, group, version }: Options): Promise<Parent> {
  const file = join(folder, 'definition.ts')
  const definitions = existsSync(file) ? (await loadModule(file)).definitions : []
  const candidates = definitions.filter(one => kind === undefined || one.kind === kind)
  const [defined, other] = candidates
  if (defined && !other) {
    const wrong = (['group', 'version'] as const).find(
      part => ({ group, version })[part] !== undefined && { group, version }[part] !== defined[part],
    )
    if (wrong) throw new Misuse(`the ${wrong} of ${defined.kind} in ${file} is ${defined[wrong]}`)
    return { kind: defined, from: './definition.ts' }
  }
  if (kind === undefined || group === undefined || version === undefined) {
    const why = other ? `${file} defines several` : `there is no definition of it in ${file}`
    throw new Misuse(`say whose child it is, by --kind, --group and --version: ${why}`)
  }
  try {
    checkNames({ kind, group, version, plural: 'any', singular: 'any', shortNames: [], categories: [] })
  } catch (error) {
    throw new Misuse(messageOf(error))
  }
  return { kind: { kind, group, version, plural: '', namespaced: true }, from: undefined }
}

interface Initial {
  readonly file: string
  readonly text: string
  readonly type: string
  readonly apiVersion: string
  readonly kind: string
}

/** A manifest as initial data: one object, without the name and the namespace, which come from the custom resource. */
function readManifest(file: string): Initial {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new Misuse(`the manifest cannot be read: ${messageOf(error)}`)
  }
  // What is a template already is taken as it is; its own kind is the only thing to learn from it.
  const isTemplate = /\{\{|\{%/.test(text)
  const document = isTemplate ? parseDocument(headOf(text)) : onlyDocument(file, text)
  if (document.errors[0]) throw new Failure(`${file} is no YAML: ${document.errors[0].message.split('\n')[0]}`)
  const { apiVersion, kind } = (document.toJS() ?? {}) as { apiVersion?: unknown; kind?: unknown }
  if (typeof apiVersion !== 'string' || typeof kind !== 'string')
    throw new Failure(`${file} has to be one object, with an apiVersion and a kind`)
  const group = apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : ''
  return {
    file,
    apiVersion,
    kind,
    type: `${kind}.${groupName({ group })}`,
    text: isTemplate ? text : stripped(document),
  }
}

function headOf(text: string): string {
  return text
    .split('\n')
    .filter(line => /^(apiVersion|kind):/.test(line))
    .join('\n')
}

function onlyDocument(file: string, text: string): Document {
  const documents = parseAllDocuments(text)
  const [first, second] = Array.isArray(documents) ? documents.filter(one => one.contents !== null) : []
  if (!first || second) throw new Failure(`${file} has to be one object, and has ${first ? 'several' : 'none'}`)
  return first
}

function stripped(document: Document): string {
  document.deleteIn(['status'])
  for (const field of [
    'name',
    'namespace',
    'uid',
    'resourceVersion',
    'creationTimestamp',
    'generation',
    'managedFields',
  ])
    document.deleteIn(['metadata', field])
  const metadata = document.get('metadata')
  if (isMap(metadata) && metadata.items.length === 0) document.deleteIn(['metadata'])
  return document.toString({ lineWidth: 0 })
}

function checkManifest({ file, apiVersion, kind }: Initial, type: Kind, asked: string): void {
  if (apiVersion !== apiVersionOf(type) || kind !== type.kind)
    throw new Misuse(`${file} is a ${kind} of ${apiVersion}, and ${asked} is a ${type.kind} of ${apiVersionOf(type)}`)
}
