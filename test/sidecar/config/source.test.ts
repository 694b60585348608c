import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { sourceOf } from '../../../sidecar/config/source.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'shipmate-source-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
})

describe('the files of a configuration', () => {
  it('are read together', () => {
    writeFileSync(join(root, 'a'), '1')
    writeFileSync(join(root, 'b'), '2')
    expect(sourceOf([join(root, 'a'), join(root, 'b')]).read()).toEqual({ texts: ['1', '2'] })
    expect(sourceOf([join(root, 'a'), join(root, 'c')]).read()).toEqual({ reason: `${join(root, 'c')} is missing` })
  })

  it('have another fingerprint after each change', () => {
    const source = sourceOf([join(root, 'a')])
    const prints = [source.fingerprint()]
    writeFileSync(join(root, 'a'), '1')
    prints.push(source.fingerprint())
    writeFileSync(join(root, 'a'), '12')
    prints.push(source.fingerprint())
    rmSync(join(root, 'a'))
    mkdirSync(join(root, 'a'))
    prints.push(source.fingerprint())
    expect(new Set(prints).size).toBe(4)
  })

  it('are never those of two moments, however often another process exchanges them', { timeout: 60_000 }, async () => {
    for (const name of ['1', '2']) {
      mkdirSync(join(root, `..${name}`))
      for (const file of ['a', 'b']) writeFileSync(join(root, `..${name}`, file), name)
    }
    symlinkSync('..1', join(root, '..data'))
    for (const file of ['a', 'b']) symlinkSync(join('..data', file), join(root, file))
    const exchange = `
      const { renameSync, symlinkSync } = require('node:fs')
      process.chdir(process.argv[1])
      for (let n = 0; ; n++) {
        symlinkSync(n % 2 ? '..1' : '..2', '..data_tmp')
        renameSync('..data_tmp', '..data')
      }`
    const child = spawn(process.execPath, ['-e', exchange, root], { stdio: 'ignore' })
    const ended = new Promise(resolve => child.once('exit', resolve))
    onTestFinished(async () => {
      child.kill('SIGKILL')
      await ended
    })
    const source = sourceOf([join(root, 'a'), join(root, 'b')])
    const seen = new Set<string>()
    for (let reads = 0; reads < 1000 || seen.size < 2; reads++) {
      const read = source.read()
      if (read) seen.add('texts' in read ? read.texts.join() : read.reason)
      await setImmediate()
    }
    expect([...seen].toSorted()).toEqual(['1,1', '2,2'])
  })
})
