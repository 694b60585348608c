/**
 * The loader and the libraries that a program needs to run anywhere, found as its own loader would find them.
 *
 * Guarantee: all of them, for the program's own processor, or a sentence that names the one that is missing.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { readElf } from './elf.ts'

/** Cannot be installed; the message is a sentence for the person who asked. */
export class CannotInstall extends Error {}

export interface Libraries {
  /** Absent: the program is statically linked. */
  readonly loader: { readonly name: string; readonly path: string } | undefined
  /** Path of each library by the name it is asked for. */
  readonly files: ReadonlyMap<string, string>
}

/** The loaders that take `--library-path`, of glibc and musl. */
const knownLoader = /^(ld-linux[-.\w]*|ld64|ld-musl-[\w]+)\.so\.\d+$/
/** glibc loads these when a name is looked up, where they are files of their own. */
const atLookUp = ['libnss_files.so.2', 'libnss_dns.so.2', 'libresolv.so.2']

/** @param extra folders to look into before those of the system */
export function librariesOf(program: string, extra: readonly string[] = []): Libraries {
  const elf = readElf(program)
  if (!elf) throw new CannotInstall(`${program} is no Linux program of 64 bits, little endian`)
  const files = new Map<string, string>()
  if (elf.interpreter === undefined) return { loader: undefined, files }
  const name = basename(elf.interpreter)
  if (!knownLoader.test(name)) {
    throw new CannotInstall(`${program} is started by ${elf.interpreter}, which is neither glibc's loader nor musl's`)
  }
  const isMusl = name.startsWith('ld-musl')
  const folders = [...new Set([...extra, ...usual(elf.interpreter, isMusl ? 'musl' : 'gnu')])]
  // As a loader does, it passes over one that is for another processor.
  const find = (wanted: string, first: readonly string[]) =>
    [...first, ...folders].map(folder => join(folder, wanted)).find(path => isFor(elf.machine, path))

  const add = (path: string, user: string) => {
    const { needed, folders: own } = readElf(path) ?? { needed: [], folders: [] }
    const first = own.map(folder => folder.replace(/\$(ORIGIN|\{ORIGIN\})/g, dirname(path)))
    for (const wanted of needed) {
      // musl's loader is its C library as well.
      if (files.has(wanted) || wanted === name || (isMusl && wanted.startsWith('libc.'))) continue
      const found = find(wanted, first)
      if (!found) {
        throw new CannotInstall(`${wanted}, which ${user} needs, is in none of ${[...first, ...folders].join(', ')}`)
      }
      files.set(wanted, found)
      add(found, wanted)
    }
  }
  add(program, program)
  for (const wanted of isMusl ? [] : atLookUp) {
    const found = find(wanted, [])
    if (found) files.set(wanted, found)
  }
  const path = find(name, []) ?? elf.interpreter
  if (!existsSync(path)) throw new CannotInstall(`${elf.interpreter}, the loader of ${program}, is not there`)
  return { loader: { name, path }, files }
}

/** Where the libraries of this very process came from. */
export function foldersInUse(): string[] {
  try {
    const paths = readFileSync('/proc/self/maps', 'utf8').match(/\/\S+\.so[.\d]*$/gm) ?? []
    return [...new Set(paths.map(path => dirname(path)))]
  } catch {
    return []
  }
}

function isFor(machine: number, path: string): boolean {
  return Boolean(statSync(path, { throwIfNoEntry: false })?.isFile()) && readElf(path)?.machine === machine
}

function usual(interpreter: string, kind: 'gnu' | 'musl'): string[] {
  const triplets = ['/lib', '/usr/lib'].flatMap(folder => {
    const names = existsSync(folder) ? readdirSync(folder) : []
    return names.filter(name => new RegExp(`^\\w+-linux-${kind}`).test(name)).map(name => join(folder, name))
  })
  return [dirname(interpreter), ...triplets, '/lib64', '/usr/lib64', '/lib', '/usr/lib', '/usr/local/lib']
}
