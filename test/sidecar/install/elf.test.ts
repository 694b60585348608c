import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Elf, readElf } from '../../../sidecar/install/elf.ts'
import { elf } from './elf-file.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'shipmate-elf-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function read(bytes: Uint8Array): Elf | undefined {
  const path = join(folder, 'file')
  writeFileSync(path, bytes)
  return readElf(path)
}

const program = elf({
  interpreter: '/lib64/ld-linux-x86-64.so.2',
  needed: ['libm.so.6', 'libc.so.6'],
  rpath: '/old',
  runpath: '$ORIGIN/../lib:/opt/lib:',
})

describe('what a file asks of its loader', () => {
  it('is its loader, its libraries by name, and where these are looked for first', () => {
    expect(read(program)).toEqual({
      machine: 62,
      interpreter: '/lib64/ld-linux-x86-64.so.2',
      needed: ['libm.so.6', 'libc.so.6'],
      folders: ['/old', '$ORIGIN/../lib', '/opt/lib'],
    })
  })

  it('has no loader where it is a library', () => {
    expect(read(elf({ needed: ['libc.so.6'], machine: 183 }))).toEqual({
      machine: 183,
      interpreter: undefined,
      needed: ['libc.so.6'],
      folders: [],
    })
  })

  it.skipIf(process.platform !== 'linux')('is read from the Node that runs this', () => {
    const { interpreter, needed } = readElf(process.execPath) ?? {}
    expect(interpreter).toMatch(/\/ld-(linux|musl)[-.\w]*\.so\.\d$/)
    expect(needed).toContainEqual(expect.stringMatching(/^libc\./))
    expect(needed).toContain('libstdc++.so.6')
  })
})

describe('a file is none of ours', () => {
  const changed = (at: number, value: number) => {
    const bytes = Buffer.from(program)
    bytes[at] = value
    return bytes
  }
  it.each([
    ['that is empty', Buffer.alloc(0)],
    [
      'that is a script',
      Buffer.from('#!/bin/sh\necho "a script that is longer than the header of a program of Linux is"\n'),
    ],
    ['of 32 bits', changed(4, 1)],
    ['of a big-endian processor', changed(5, 2)],
    ['that ends in its header', program.subarray(0, 40)],
    ['that ends in its table of segments', program.subarray(0, 100)],
  ])('%s', (_, bytes) => {
    expect(read(bytes)).toBeUndefined()
  })
})

it('whatever is wrong with a file, it is read or refused, and nothing is thrown', { timeout: 30_000 }, () => {
  const damage = fc.array(fc.tuple(fc.nat(program.length - 1), fc.nat(255)), { maxLength: 8 })
  fc.assert(
    fc.property(damage, fc.nat(program.length), (changes, length) => {
      const bytes = Buffer.from(program)
      for (const [at, value] of changes) bytes[at] = value
      read(bytes.subarray(0, length))
    }),
    { numRuns: 500 },
  )
})
