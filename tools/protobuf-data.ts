/**
 * Writes devcluster/data/protobuf.json: the messages that built-in kinds are sent as, from Kubernetes' own Go types.
 * `node tools/protobuf-data.ts` needs Go; bench/go/go.mod says of which version. The kinds are those of devcluster/data/resources.json.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const file = join(root, 'devcluster/data/protobuf.json')

interface Named {
  group: string
  version: string
  kind: string
}

/** Kinds that are sent though no resource has them: of subresources, and how to delete. */
const others = [
  'policy/v1 Eviction',
  'authentication.k8s.io/v1 TokenRequest',
  'autoscaling/v1 Scale',
  'v1 DeleteOptions',
]

/** All kinds that a client may send, as `APIVERSION KIND`. */
export function sentKinds(): string[] {
  const { resources } = JSON.parse(readFileSync(join(root, 'devcluster/data/resources.json'), 'utf8')) as {
    resources: Named[]
  }
  const own = resources.map(({ group, version, kind }) => `${group ? `${group}/` : ''}${version} ${kind}`)
  return [...new Set([...own, ...others])]
}

/** What the Go program of bench/go/wire says of the kinds. */
export function askGo(kinds: readonly string[], ...args: string[]): string {
  return execFileSync('go', ['run', './wire', ...args], {
    cwd: join(root, 'bench/go'),
    input: `${kinds.join('\n')}\n`,
    maxBuffer: 1 << 30,
    encoding: 'utf8',
  })
}

/** The file's text: a line for each message. */
export function tableText(): string {
  const { kinds, messages } = JSON.parse(askGo(sentKinds(), 'table')) as { kinds: object; messages: object }
  const lines = Object.entries(messages).map(
    ([name, fields]) => `    ${JSON.stringify(name)}: ${JSON.stringify(fields)}`,
  )
  return `{\n  "kinds": ${JSON.stringify(kinds)},\n  "messages": {\n${lines.join(',\n')}\n  }\n}\n`
}

if (import.meta.main) writeFileSync(file, tableText())
