import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CannotInstall, foldersInUse, librariesOf } from '../../../sidecar/install/libraries.ts'
import { type ElfFile, writeElf } from './elf-file.ts'

/** A folder with these files, by their paths in it. */
function files(all: Record<string, ElfFile>): { folder: string; at: (path: string) => string } {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'shipmate-libraries-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const at = (path: string) => join(folder, path)
  for (const [path, file] of Object.entries(all)) writeElf(at(path), file)
  return { folder, at }
}

const glibc = '/lib64/ld-linux-x86-64.so.2'
const musl = '/lib/ld-musl-x86_64.so.1'
/** Names that no system has, so that nothing is found but what a test has made. */
const libraries = { one: 'libshipmate-one.so.1', two: 'libshipmate-two.so.1' }

describe('the libraries of a program', () => {
  it('are those that it needs, and those that these need, each once', () => {
    const { at } = files({
      node: { interpreter: glibc, needed: [libraries.one, libraries.two] },
      'lib/ld-linux-x86-64.so.2': {},
      [`lib/${libraries.one}`]: { needed: [libraries.two, 'ld-linux-x86-64.so.2'] },
      [`lib/${libraries.two}`]: { needed: [libraries.one] },
    })
    const { loader, files: found } = librariesOf(at('node'), [at('lib')])
    expect(loader).toEqual({ name: 'ld-linux-x86-64.so.2', path: at('lib/ld-linux-x86-64.so.2') })
    expect(found.get(libraries.one)).toBe(at(`lib/${libraries.one}`))
    expect(found.get(libraries.two)).toBe(at(`lib/${libraries.two}`))
  })

  it('are looked for where the file itself says, before anywhere else', () => {
    const { at } = files({
      'bin/node': { interpreter: glibc, needed: [libraries.one, libraries.two], runpath: '$ORIGIN/../own' },
      'lib/ld-linux-x86-64.so.2': {},
      [`own/${libraries.one}`]: { needed: [libraries.two], rpath: `$\{ORIGIN}/deeper` },
      [`own/deeper/${libraries.two}`]: {},
      [`lib/${libraries.one}`]: {},
    })
    const { files: found } = librariesOf(at('bin/node'), [at('lib')])
    expect(found.get(libraries.one)).toBe(at(`bin/../own/${libraries.one}`).replace('bin/../', ''))
    expect(found.get(libraries.two)).toBe(at(`own/deeper/${libraries.two}`))
  })

  it('are those of its own processor, whatever stands before them', () => {
    const { at } = files({
      node: { interpreter: glibc, needed: [libraries.one] },
      'lib/ld-linux-x86-64.so.2': {},
      [`lib/${libraries.one}`]: {},
      [`other/${libraries.one}`]: { machine: 183 },
    })
    mkdirSync(at(`folder/${libraries.one}`), { recursive: true })
    mkdirSync(at('script'))
    writeFileSync(at(`script/${libraries.one}`), '/* GNU ld script */ INPUT(-lshipmate)')
    const places = ['other', 'folder', 'script', 'lib'].map(at)
    expect(librariesOf(at('node'), places).files.get(libraries.one)).toBe(at(`lib/${libraries.one}`))
  })

  it('are none, where it is statically linked', () => {
    const { at } = files({ node: {} })
    expect(librariesOf(at('node'))).toEqual({ loader: undefined, files: new Map() })
  })

  it('are with musl all but its C library, which is the loader', () => {
    const { at } = files({
      node: { interpreter: musl, needed: [libraries.one, 'libc.musl-x86_64.so.1'] },
      'lib/ld-musl-x86_64.so.1': {},
      [`lib/${libraries.one}`]: { needed: ['libc.musl-x86_64.so.1'] },
    })
    expect(librariesOf(at('node'), [at('lib')])).toEqual({
      loader: { name: 'ld-musl-x86_64.so.1', path: at('lib/ld-musl-x86_64.so.1') },
      files: new Map([[libraries.one, at(`lib/${libraries.one}`)]]),
    })
  })

  it.skipIf(process.platform !== 'linux')('are found for the Node that runs this, where it has them from', () => {
    const { loader, files: found } = librariesOf(process.execPath, foldersInUse())
    expect(loader?.name).toMatch(/^ld-/)
    expect([...found.keys()]).toContain('libstdc++.so.6')
  })
})

describe('one sentence says why', () => {
  const why = (program: string, folders: string[] = []) => {
    try {
      librariesOf(program, folders)
      return 'it can'
    } catch (error) {
      expect(error).toBeInstanceOf(CannotInstall)
      return (error as Error).message
    }
  }

  it('a library is missing: which, for whom, and where it was looked for', () => {
    const { at } = files({
      node: { interpreter: glibc, needed: [libraries.one] },
      [`lib/${libraries.one}`]: { needed: [libraries.two], runpath: '$ORIGIN/own' },
    })
    const places = `${at('lib/own')}, ${at('lib')}, /lib64, `
    expect(why(at('node'), [at('lib')])).toContain(
      `${libraries.two}, which ${libraries.one} needs, is in none of ${places}`,
    )
  })

  it('the loader is missing', () => {
    const { at } = files({ node: { interpreter: '/nowhere/ld-musl-shipmate.so.1' } })
    expect(why(at('node'))).toBe(`/nowhere/ld-musl-shipmate.so.1, the loader of ${at('node')}, is not there`)
  })

  it('the loader is one that cannot be told where its libraries are', () => {
    const { at } = files({ node: { interpreter: '/system/bin/linker64' } })
    expect(why(at('node'))).toBe(
      `${at('node')} is started by /system/bin/linker64, which is neither glibc's loader nor musl's`,
    )
  })

  it('it is no program at all', () => {
    const { at } = files({})
    writeFileSync(at('node'), '#!/bin/sh\n')
    expect(why(at('node'))).toBe(`${at('node')} is no Linux program of 64 bits, little endian`)
  })
})
