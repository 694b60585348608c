/**
 * Checks that imports between folders point one way only, types included: `node tools/imports.ts` names each one that does not.
 * Also that @kubernetes/client-node, 80 MB of memory when loaded, is imported for its types alone but in the few files that need its code.
 */
import { glob, readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { parseSync, Visitor } from 'oxc-parser'

/** Whom each folder may import, besides itself. */
const allowed: Record<string, string[]> = {
  shared: [],
  sidecar: ['shared'],
  'controller/kube': ['shared'],
  'controller/runtime': ['shared', 'controller/kube'],
  'controller/toolkit': ['shared', 'controller/kube', 'controller/runtime'],
  'controller/app': ['shared', 'controller/kube', 'controller/runtime', 'controller/toolkit'],
  'controller/webhook': ['shared', 'controller/kube', 'controller/runtime', 'controller/toolkit', 'controller/app'],
  devcluster: ['shared', 'controller/kube', 'controller/runtime'],
}
allowed.cli = Object.keys(allowed)

/** These may import anything, and none of the above may import them. */
const free = ['bin', 'test', 'bench', 'examples', 'tools', 'deploy', 'docs', '.']

const client = '@kubernetes/client-node'
const clientUsers = ['configfile.ts', 'kubeconfig.ts'].map(file => `controller/kube/${file}`)

/** What is loaded whenever the command line starts begins here. */
const start = 'cli/main.ts'

interface Import {
  /** As it is written. */
  from: string
  /** The imported file, from the root, when it is one of ours. */
  file: string | undefined
  /** `type` goes when the types are stripped, `lazy` is an `import()`. */
  kind: 'type' | 'value' | 'lazy'
  line: number
}

interface Source {
  path: string
  folder: string | undefined
  imports: Import[]
}

/** @param files the text of each file by its path from the root; answers one sentence per import that should not be there */
export function check(files: Record<string, string>): string[] {
  const sources = Object.entries(files).map(([path, text]): Source => {
    return { path, folder: folderOf(path), imports: importsOf(path, text) }
  })
  const ruled = sources.filter(({ folder }) => folder === undefined || !free.includes(folder))
  const startUp = loadedAtStart(sources)
  return ruled.flatMap(source => {
    if (source.folder === undefined) {
      return `${source.path}: stands in no folder that has a rule; give it one in tools/imports.ts`
    }
    return source.imports.flatMap(imported => {
      const reason = offence(source, imported, startUp)
      return reason ? `${source.path}:${imported.line}: ${reason}` : []
    })
  })
}

function offence(
  { path, folder = '' }: Source,
  { from, file, kind }: Import,
  startUp: Set<string>,
): string | undefined {
  if (from === 'shipmate' || from.startsWith('shipmate/')) {
    return `'${from}' is this package itself; import the file`
  }
  if ((from === client || from.startsWith(`${client}/`)) && kind !== 'type' && !clientUsers.includes(path)) {
    return `'${from}' is imported with its code; write \`import type\`, or use what ${clientUsers.join(', ')} offer`
  }
  if (file === undefined || file === 'package.json') return undefined
  const target = folderOf(file)
  const others = allowed[folder] ?? []
  if (target !== folder && !(target && others.includes(target))) {
    return `${folder} may import ${others.join(', ') || 'nothing but itself'}, not '${from}'`
  }
  if (startUp.has(path) && kind === 'value' && target !== folder && target !== 'shared') {
    return `'${from}' is loaded whenever the command line starts; load it with \`await import()\` where it is used`
  }
  return undefined
}

/** The files of the command line that its start loads: all it reaches without an `import()`. */
function loadedAtStart(sources: Source[]): Set<string> {
  const byPath = new Map(sources.map(source => [source.path, source]))
  const reached = new Set([start])
  for (const path of reached) {
    for (const { file, kind } of byPath.get(path)?.imports ?? []) {
      if (kind === 'value' && file && folderOf(file) === 'cli') reached.add(file)
    }
  }
  return reached
}

function importsOf(path: string, text: string): Import[] {
  const { program, errors } = parseSync(path, text, { sourceType: path.endsWith('.cjs') ? 'commonjs' : 'module' })
  if (errors[0]) throw new Error(`${path}: ${errors[0].message}`)
  const imports: Import[] = []
  const add = (source: { type: string; start: number; value?: unknown } | null, kind: Import['kind']) => {
    if (source?.type !== 'Literal' || typeof source.value !== 'string') return
    const from = source.value
    const file = from.startsWith('.') ? posix.join(posix.dirname(path), from) : undefined
    imports.push({ from, file, kind, line: text.slice(0, source.start).split('\n').length })
  }
  new Visitor({
    // `import { type T } from` still loads the module: only `import type` does not.
    ImportDeclaration: node => add(node.source, node.importKind === 'type' ? 'type' : 'value'),
    ExportAllDeclaration: node => add(node.source, node.exportKind === 'type' ? 'type' : 'value'),
    ExportNamedDeclaration: node => add(node.source, node.exportKind === 'type' ? 'type' : 'value'),
    ImportExpression: node => add(node.source, 'lazy'),
    TSImportType: node => add(node.source, 'type'),
  }).visit(program)
  return imports
}

function folderOf(path: string): string | undefined {
  const folder = posix.dirname(path)
  if (folder === '.') return '.'
  return [...Object.keys(allowed), ...free].find(known => folder === known || folder.startsWith(`${known}/`))
}

async function ourFiles(root: string): Promise<Record<string, string>> {
  const skip = (name: string) => /^(node_modules|dist|coverage|\..+)$/.test(posix.basename(name))
  const files: Record<string, string> = {}
  for await (const path of glob('**/*.{ts,mts,cts,tsx,js,mjs,cjs}', { cwd: root, exclude: skip })) {
    files[path] = await readFile(join(root, path), 'utf8')
  }
  return files
}

if (import.meta.main) {
  const files = await ourFiles(join(import.meta.dirname, '..'))
  const offences = check(files)
  for (const line of offences) console.error(line)
  console.log(`imports: ${Object.keys(files).length} files, ${offences.length} wrong`)
  process.exitCode = offences.length > 0 ? 1 : 0
}
