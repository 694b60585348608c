import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sha256 } from '../../../shared/canonical.ts'
import { configHash } from '../../../shared/lifecycle/hash.ts'
import { checkConfig } from '../../../sidecar/config/check.ts'
import { examine } from '../../../sidecar/config/examine.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'shipmate-check-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function check(text: string | Buffer): { lines: string[]; isUsable: boolean } {
  const file = join(folder, 'config.yaml')
  writeFileSync(file, text)
  const { lines, isUsable } = checkConfig(file)
  return { lines: lines.map(line => line.replace(file, 'FILE')), isUsable }
}

describe('to check a configuration', () => {
  it('says nothing of a right one', () => {
    expect(check('states:\n  - {name: Start, next: [End]}\n  - {name: End, verb: Delete}\n')).toEqual({
      lines: [],
      isUsable: true,
    })
  })

  it('names each mistake with its file, line and column, errors first', () => {
    const text = `states:
  - name: Start
    next: [Ende]
  - name: End
    verb: Delete
probes:
  - name: up
    process: {name: x}
    every: 0s
`
    expect(check(text)).toEqual({
      isUsable: false,
      lines: [
        'FILE:3:12: states[0].next[0]: "Ende" is no state; did you mean "End"?',
        'FILE:9:5: probes[0].every: "0s" is too short: at least 100ms',
        'FILE:8:5: warning: probes[0].process: needs a pod with `shareProcessNamespace: true`',
      ],
    })
  })

  it('names an unknown field where it stands', () => {
    expect(check('states:\n  - name: Start\n    nxt: [Start]\n').lines).toEqual([
      'FILE:3:5: states[0].nxt: no such field; did you mean "next"?',
    ])
  })

  it('says where a text cannot be read', () => {
    expect(check('a: [1').lines[0]).toMatch(/^FILE:1:6: Flow sequence/)
    expect(check(Buffer.from([0x61, 0xff])).lines[0]).toMatch(/^FILE:1:1: cannot be read: /)
    expect(checkConfig(join(folder, 'none'))).toMatchObject({
      isUsable: false,
      lines: [expect.stringContaining('ENOENT')],
    })
  })

  it('says that nothing is no configuration', () => {
    expect(check('').lines).toEqual(['FILE:1:1: null is not an object'])
  })

  it('does not warn of a parameter in the name of the file with the result, as it is replaced there', () => {
    const action = 'exec: {command: [x]}, params: {to: {type: string}}, result: {file: /tmp/$(params.to)}'
    expect(check(`actions: [{name: a, ${action}}]`)).toEqual({ isUsable: true, lines: [] })
  })

  it('lets a configuration with warnings pass', () => {
    expect(check('probes: [{name: x, process: {name: y}}]')).toMatchObject({
      isUsable: true,
      lines: [expect.stringContaining('warning: ')],
    })
  })
})

describe('a whole Lifecycle', () => {
  const manifest = (kind: string, spec: string) => `apiVersion: shipmate.dev/v1alpha1\nkind: ${kind}\n${spec}`

  it('is as good as its spec', () => {
    const spec = 'probes: [{name: x, tcp: {port: 1}}]'
    expect(check(manifest('Lifecycle', `metadata: {name: y}\nspec: {${spec}}\n`))).toEqual({
      lines: [],
      isUsable: true,
    })
    expect(examine(manifest('Lifecycle', `spec: {${spec}}\n`)).config?.hash).toBe(examine(spec).config?.hash)
  })

  it('has its mistakes where they stand', () => {
    expect(check(manifest('Lifecycle', 'spec:\n  probs: []\n')).lines).toEqual([
      'FILE:4:3: probs: no such field; did you mean "probes"?',
    ])
  })

  it.each([
    ['Lifecycle', 'metadata: {name: y}\n', 'this Lifecycle has no `spec`'],
    ['ConfigMap', 'data: {}\n', 'this is a whole ConfigMap; a Lifecycle is wanted, or its `spec` alone'],
  ])('that is a %s with %j is refused by its name', (kind, rest, message) => {
    expect(check(manifest(kind, rest))).toEqual({ isUsable: false, lines: [`FILE:2:1: ${message}`] })
  })
})

describe('the hash of a configuration', () => {
  it('is that of its four fields as written, in canonical JSON', () => {
    const text = 'probes: [{tcp: {port: 1}, name: x}]\nstates: []\n'
    expect(examine(text).config?.hash).toBe(sha256('{"probes":[{"name":"x","tcp":{"port":1}}],"states":[]}'))
    expect(configHash({})).toBe(sha256('{}'))
  })

  it('does not change with the formatting, and does with the content', () => {
    const hash = (text: string) => examine(text).config?.hash
    expect(hash('{"probes": [{"name": "x", "tcp": {"port": 1}}]}')).toBe(
      hash('probes:\n  - tcp: {port: 0x1} # one\n    name: "x"\n'),
    )
    expect(hash('probes: []')).not.toBe(hash('{}'))
  })
})
