/**
 * Writes devcluster/data/zeros.json: per built-in type the fields that a server leaves out where they are zero, and those
 * that it always writes. The published OpenAPI does not tell a number
 * from a pointer to one; the Go types do. `node tools/api-zeros.ts` with Go and its modules k8s.io/{api,apimachinery,apiextensions-apiserver} at hand.
 */
import { execFileSync } from 'node:child_process'
import { glob, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import types from '../devcluster/data/types.json' with { type: 'json' }

const modules = {
  api: 'io.k8s.api',
  apimachinery: 'io.k8s.apimachinery',
  'apiextensions-apiserver': 'io.k8s.apiextensions-apiserver',
}

interface Field {
  name: string
  type: string
  isInline: boolean
  isOmitted: boolean
  isOmittedZero: boolean
}

type Structs = Map<string, Field[]>

const root = join(execFileSync('go', ['env', 'GOMODCACHE'], { encoding: 'utf8' }).trim(), 'k8s.io')
const found: Structs = new Map()
for (const [module, prefix] of Object.entries(modules)) {
  const [folder] = (await readdir(root))
    .filter(name => name.startsWith(`${module}@`))
    .sort()
    .reverse()
  if (!folder) throw new Error(`the module k8s.io/${module} is not in ${root}`)
  for await (const file of glob('**/*types*.go', { cwd: join(root, folder) })) {
    const owner = `${prefix}.${dirname(file).replaceAll('/', '.')}`
    for (const [name, fields] of structsOf(await readFile(join(root, folder, file), 'utf8')))
      found.set(`${owner}.${name}`, fields)
  }
}

interface Shape {
  properties?: Record<string, { type?: string; $ref?: string; allOf?: unknown }>
}

type Zeros = Record<string, { leftOut?: string[]; always?: Record<string, unknown> }>

const zeros: Zeros = {}
for (const [name, shape] of Object.entries(types as Record<string, Shape>)) {
  const leftOut: string[] = []
  const always: Record<string, unknown> = {}
  for (const field of fieldsOf(name)) {
    const property = shape.properties?.[field.name]
    const zero = property && zeroOf(field.type, property)
    if (zero === undefined) continue
    const isTime = /^(metav1\.)?(Micro)?Time$/.test(field.type)
    if (!field.isOmitted || (isTime && !field.isOmittedZero)) always[field.name] = zero
    else if (zero !== null) leftOut.push(field.name)
  }
  if (leftOut.length > 0 || Object.keys(always).length > 0) {
    zeros[name] = {
      ...(leftOut.length > 0 ? { leftOut: leftOut.sort() } : {}),
      ...(Object.keys(always).length > 0 ? { always } : {}),
    }
  }
}
const lines = Object.entries(zeros).map(([name, fields]) => `  ${JSON.stringify(name)}: ${JSON.stringify(fields)}`)
await writeFile(join(import.meta.dirname, '../devcluster/data/zeros.json'), `{\n${lines.join(',\n')}\n}\n`)
console.log(`${lines.length} types`)

/** What a field has that nobody set; undefined for pointers and structs. */
function zeroOf(type: string, { type: shown }: { type?: string }): unknown {
  if (type.startsWith('*')) return undefined
  if (/^(\[\]|map\[)/.test(type)) return null
  if (/^(metav1\.)?(Micro)?Time$/.test(type)) return null
  if (shown === 'string') return ''
  if (shown === 'integer' || shown === 'number') return 0
  return shown === 'boolean' ? false : undefined
}

/** The fields of a type, those of embedded types among them. */
function fieldsOf(type: string): Field[] {
  const owner = type.slice(0, type.lastIndexOf('.'))
  return (found.get(type) ?? []).flatMap(field =>
    field.isInline ? fieldsOf(`${owner}.${field.type.split('.').at(-1)}`) : [field],
  )
}

function structsOf(text: string): Structs {
  const structs: Structs = new Map()
  for (const [, name = '', body = ''] of text.matchAll(/^type (\w+) struct \{\n(.*?)^\}/gms)) {
    const fields = [...body.matchAll(/^\s*(?:\w+\s+)?(\S+)\s+`(?:protobuf:"[^"]*" )?json:"([^"]*)"/gm)]
    structs.set(
      name,
      fields.map(([, type = '', tag = '']) => {
        const [json = '', ...options] = tag.split(',')
        return {
          name: json,
          type,
          isInline: json === '',
          isOmitted: options.includes('omitempty'),
          isOmittedZero: options.includes('omitzero'),
        }
      }),
    )
  }
  return structs
}
