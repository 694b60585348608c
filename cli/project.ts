/**
 * The project of an operator: the folder with `shipmate.yaml`, the one setting that every manifest follows.
 *
 * Guarantee: a value is taken as it is written; a tag such as 1.10 is no number.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'
import { messageOf } from '../shared/errors.ts'
import { suggestion } from '../shared/nearest.ts'
import { Failure, Misuse } from './ending.ts'
import { type Exported, loadModule } from './module.ts'

const settingsFile = 'shipmate.yaml'

const label = 'lower-case letters, digits and "-", a letter first and no "-" last, at most 50'
export const dnsLabel = z.string().regex(/^[a-z]([-a-z0-9]{0,48}[a-z0-9])?$/, { error: `has to be ${label}` })
const component = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*'
export const registryName = z.string().regex(new RegExp(`^(${component}(:\\d+)?(/${component})*)?$`), {
  error: 'has to be a registry and perhaps a path in it, such as registry.example.com/team, or empty',
})

const settings = z.strictObject({
  /** Where the image is pushed to and pulled from. Default: none, the image is the machine's own. */
  registry: registryName.default(''),
  /** Of the image, and of everything on the cluster. */
  name: dnsLabel,
  /** Of the image. */
  tag: z.string().regex(/^\w[\w.-]{0,127}$/, { error: 'has to be a tag of an image, such as 0.1.0' }),
  /** Where it is deployed. Default: its name. */
  namespace: dnsLabel.optional(),
  /** How many run; one of them works. Default 2. */
  replicas: z
    .string()
    .regex(/^\d{1,2}$/, { error: 'has to be a number from 0 to 99' })
    .transform(Number)
    .default(2),
  /** The module that exports its operators. */
  operator: z.string().default('src/operator.ts'),
  /** The module that runs them. */
  main: z.string().default('src/main.ts'),
})

export interface Project {
  readonly folder: string
  readonly name: string
  readonly namespace: string
  /** `REGISTRY/NAME:TAG` */
  readonly image: string
  readonly replicas: number
  readonly main: string
  /** Its definitions and operators. */
  load(): Promise<Exported & { readonly lease: string }>
}

/** The project in a folder. Default: in the working directory. */
export function readProject(folder = process.cwd()): Project {
  const found = findProject(folder)
  if (!found) throw new Misuse(`there is no ${settingsFile} in ${folder}: go to the folder of an operator's project`)
  return found
}

export function findProject(folder = process.cwd()): Project | undefined {
  const file = join(folder, settingsFile)
  if (!existsSync(file)) return undefined
  const { registry, name, tag, namespace = name, replicas, operator, main } = read(readFileSync(file, 'utf8'))
  return {
    ...{ folder, name, namespace, replicas, main: join(folder, main) },
    image: `${registry === '' ? '' : `${registry}/`}${name}:${tag}`,
    async load() {
      const exported = await loadModule(join(folder, operator))
      if (exported.operators.length === 0) throw new Failure(`${exported.file} exports no operator`)
      return { ...exported, lease: leaseOf(exported) }
    },
  }
}

/** The name of the lease; of several operators, of the first that is started. */
export function leaseOf({ file, lease }: Exported): string {
  if (lease !== undefined) return lease
  throw new Failure(
    `${file} exports several operators, and which is the first, after which the lease is named, is not known: export them as one list, the one that run() gets`,
  )
}

function read(text: string): z.output<typeof settings> {
  let given: unknown
  try {
    // All that is not a list or a map is text.
    given = parse(text, { schema: 'failsafe' })
  } catch (error) {
    throw new Failure(`${settingsFile} is no YAML: ${messageOf(error).split('\n')[0]}`)
  }
  const { data, error } = settings.safeParse(given ?? {})
  if (data) return data
  const [issue] = error.issues
  throw new Failure(`${settingsFile}: ${issue ? sentenceOf(issue, given) : error.message}`)
}

function sentenceOf(issue: z.core.$ZodIssue, given: unknown): string {
  if (issue.code === 'unrecognized_keys') {
    const [key = ''] = issue.keys
    return `there is no setting "${key}"${suggestion(key, Object.keys(settings.shape))}`
  }
  const field = issue.path.join('.')
  if (field === '') return 'it has to be a map with registry, name and tag'
  const value = (given as Record<string, unknown>)[field]
  if (value === undefined) return `${field} is missing`
  return `${field}: ${JSON.stringify(value)} ${issue.code === 'invalid_format' ? issue.message : 'has to be a text'}`
}
