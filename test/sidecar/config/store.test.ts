import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../../shared/clock.ts'
import { createLog } from '../../../shared/log.ts'
import { parseConfig } from '../../../sidecar/config/parse.ts'
import { signedBytes } from '../../../sidecar/config/signature.ts'
import { type ConfigStoreOptions, createConfigStore } from '../../../sidecar/config/store.ts'
import { VirtualClock } from '../../fixtures/virtual-clock.ts'

vi.setConfig({ testTimeout: 60_000 })

const probe = (name: string) => `probes: [{name: ${name}, tcp: {port: 1}}]\n`
const { logger: log } = createLog({ level: 'silent' })

let root: string
let clock: VirtualClock
let stops: (() => void)[]
const file = () => join(root, 'config', 'lifecycle.yaml')
const stateDir = () => join(root, 'state')

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'shipmate-config-'))
  mkdirSync(join(root, 'config'))
  mkdirSync(stateDir(), { mode: 0o700 })
  clock = new VirtualClock()
  stops = []
})
afterEach(() => {
  for (const stop of stops) stop()
  rmSync(root, { recursive: true })
})

function open(more: Partial<ConfigStoreOptions> = {}) {
  const events: string[] = []
  const store = createConfigStore({
    file: file(),
    stateDir: stateDir(),
    clock,
    log,
    onChange: ({ spec }) => events.push(spec.probes?.map(one => one.name).join() ?? '-'),
    onRefused: reason => events.push(`refused: ${reason.replaceAll(root, '')}`),
    ...more,
  })
  stops.push(() => store.stop())
  store.start()
  return { store, events }
}

/** As the kubelet changes a mounted ConfigMap: a new folder, and the link `..data` exchanged by a rename. */
function mount(name: string, files: Record<string, string>): void {
  const config = join(root, 'config')
  mkdirSync(join(config, `..${name}`))
  for (const [key, text] of Object.entries(files)) {
    writeFileSync(join(config, `..${name}`, key), text)
    rmSync(join(config, key), { force: true })
    symlinkSync(join('..data', key), join(config, key))
  }
  symlinkSync(`..${name}`, join(config, '..data_tmp'))
  renameSync(join(config, '..data_tmp'), join(config, '..data'))
  for (const old of readdirSync(config)) {
    if (/^\.\.\d/.test(old) && old !== `..${name}`) rmSync(join(config, old), { recursive: true })
  }
}

describe('a configuration', () => {
  it('comes into force at the start', () => {
    writeFileSync(file(), probe('one'))
    const { store, events } = open()
    expect(events).toEqual(['one'])
    expect(store.current()).toMatchObject({
      spec: { probes: [{ name: 'one' }] },
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    expect(store.current()?.lifecycle.spec).toBe(store.current()?.spec)
    expect(store.refused()).toBeUndefined()
  })

  it('is waited for', async () => {
    const { store, events } = open()
    expect(store.current()).toBeUndefined()
    expect(events).toEqual(['refused: /config/lifecycle.yaml is missing'])
    writeFileSync(file(), probe('one'))
    expect(await clock.until(() => store.current() !== undefined, 5000)).toBe(true)
    expect(store.refused()).toBeUndefined()
  })

  it('is waited for even if its folder is not there', async () => {
    rmSync(join(root, 'config'), { recursive: true })
    const { store } = open()
    await clock.advance(3000)
    mkdirSync(join(root, 'config'))
    writeFileSync(file(), probe('one'))
    expect(await clock.until(() => store.current() !== undefined, 5000)).toBe(true)
  })

  it('follows its file by events alone, as it stands in a mounted ConfigMap', async () => {
    mount('1', { 'lifecycle.yaml': probe('one') })
    const { events } = open()
    mount('2', { 'lifecycle.yaml': probe('two') })
    await vi.waitFor(() => expect(events).toEqual(['one', 'two']), 30_000)
    mount('3', { 'lifecycle.yaml': probe('three') })
    await vi.waitFor(() => expect(events).toEqual(['one', 'two', 'three']), 30_000)
  })

  it('follows its file by looking alone', async () => {
    mkdirSync(join(root, 'elsewhere'))
    writeFileSync(join(root, 'elsewhere', 'real.yaml'), probe('one'))
    symlinkSync(join(root, 'elsewhere', 'real.yaml'), file())
    const { store, events } = open()
    writeFileSync(join(root, 'elsewhere', 'real.yaml'), probe('two'))
    await clock.until(() => events.length === 2, 5000)
    expect(events).toEqual(['one', 'two'])
    expect(store.current()?.spec.probes?.[0]?.name).toBe('two')
  })

  it('that changes again with the same size and time is seen', async () => {
    const moment = new Date(clock.now())
    const write = (name: string) => {
      writeFileSync(file(), probe(name))
      utimesSync(file(), moment, moment)
    }
    write('one')
    const { events } = open()
    write('two')
    await clock.advance(2000)
    expect(events).toEqual(['one', 'two'])
  })

  it('of which only the formatting changes is the same', async () => {
    writeFileSync(file(), probe('one'))
    const { events } = open()
    writeFileSync(file(), `# the same\n${probe('one')}`)
    await clock.advance(3000)
    expect(events).toEqual(['one'])
  })

  it('that is bad is refused with its reason, and the last good one stays', async () => {
    writeFileSync(file(), probe('one'))
    const { store, events } = open()
    writeFileSync(file(), probe('1'))
    await clock.until(() => events.length > 1, 5000)
    await clock.advance(5000)
    expect(events).toEqual(['one', 'refused: /config/lifecycle.yaml:1:11: probes[0].name: 1 is not a text'])
    expect(store.current()?.spec.probes?.[0]?.name).toBe('one')
    expect(store.refused()).toContain('is not a text')

    writeFileSync(file(), probe('one'))
    await clock.until(() => store.refused() === undefined, 5000)
    expect(store.refused()).toBeUndefined()
    // That it is good again is told as well.
    expect(events.slice(2)).toEqual(['one'])
    await clock.advance(5000)
    expect(events).toHaveLength(3)
  })

  it('that is taken away stays in force', async () => {
    writeFileSync(file(), probe('one'))
    const { store } = open()
    rmSync(file())
    await clock.until(() => store.refused() !== undefined, 5000)
    expect(store.current()?.spec.probes?.[0]?.name).toBe('one')
    expect(store.refused()).toContain('is missing')
  })

  it.each<[string, () => void, string]>([
    ['a folder', () => mkdirSync(file()), 'is not a file'],
    ['too large', () => writeFileSync(file(), `# ${'x'.repeat(2 ** 20)}`), '1048576 at most'],
    ['not text', () => writeFileSync(file(), Buffer.from([0xff, 0xfe, 0x00])), 'cannot be read'],
    ['a circle of links', () => symlinkSync(file(), file()), 'ELOOP'],
    [
      'in a folder that is a file',
      () => {
        rmSync(join(root, 'config'), { recursive: true })
        writeFileSync(join(root, 'config'), '')
      },
      '',
    ],
  ])('that is %s is refused, and waited for', async (_, make, reason) => {
    make()
    const { store } = open()
    expect(store.refused()).toContain(reason)
    rmSync(join(root, 'config'), { recursive: true })
    mkdirSync(join(root, 'config'))
    writeFileSync(file(), probe('one'))
    expect(await clock.until(() => store.current() !== undefined, 5000)).toBe(true)
  })

  it('is no longer followed after a stop', async () => {
    writeFileSync(file(), probe('one'))
    const { store, events } = open()
    store.stop()
    writeFileSync(file(), probe('two'))
    await clock.advance(5000)
    expect(events).toEqual(['one'])
    expect(clock.pending).toBe(0)
  })
})

describe('the last good configuration', () => {
  const kept = () => join(stateDir(), 'config.json')

  it('is kept for its owner alone, and nothing else is left there', () => {
    writeFileSync(file(), probe('one'))
    open()
    expect(JSON.parse(readFileSync(kept(), 'utf8'))).toEqual({
      v: 1,
      signed: false,
      spec: parseConfig(probe('one')).value,
    })
    expect(statSync(kept()).mode & 0o777).toBe(0o600)
    expect(readdirSync(stateDir())).toEqual(['config.json'])
  })

  it.each([
    ['missing', () => rmSync(file())],
    ['bad', () => writeFileSync(file(), '{')],
  ])('is in force after a restart when the file is %s', (_, spoil) => {
    writeFileSync(file(), probe('one'))
    const before = open()
    before.store.stop()
    spoil()
    const { store, events } = open()
    expect(store.current()?.hash).toBe(before.store.current()?.hash)
    expect(events[1]).toBe('one')
    expect(store.refused()).toBeDefined()
  })

  it('gives way to the file', () => {
    writeFileSync(file(), probe('one'))
    open().store.stop()
    writeFileSync(file(), probe('two'))
    expect(open().events).toEqual(['two'])
  })

  it.each(['', '{"v":1', 'null', '{"v":2,"signed":false,"spec":{}}', '{"v":1,"signed":false,"spec":{"states":5}}'])(
    'is passed over if it is damaged: %s',
    text => {
      writeFileSync(kept(), text)
      expect(open().store.current()).toBeUndefined()
    },
  )

  it('is kept later if it cannot be kept at once', async () => {
    rmSync(stateDir(), { recursive: true })
    writeFileSync(file(), probe('one'))
    expect(open().events).toEqual(['one'])
    mkdirSync(stateDir())
    await clock.advance(2000)
    expect(readdirSync(stateDir())).toEqual(['config.json'])
  })

  it('survives a half-written one beside it', () => {
    writeFileSync(join(stateDir(), 'config.json.new'), 'half')
    writeFileSync(file(), probe('one'))
    open()
    expect(readdirSync(stateDir())).toEqual(['config.json'])
  })
})

describe('with a signature', () => {
  const place = { namespace: 'shop', name: 'postgres' }
  const pair = () => generateKeyPairSync('ed25519')
  const pem = (key: KeyObject) => String(key.export({ type: 'spki', format: 'pem' }))
  const tlsDir = () => join(root, 'tls')
  const signature = () => ({ tlsDir: tlsDir(), ...place })
  const signed = (text: string, key: KeyObject, where = place) =>
    sign(null, signedBytes({ ...where, spec: parseConfig(text).value }), key).toString('base64')
  const trust = (...keys: KeyObject[]) => writeFileSync(join(tlsDir(), 'lifecycle.pub'), keys.map(pem).join(''))
  const write = (text: string, sig: string) => {
    writeFileSync(file(), text)
    writeFileSync(join(root, 'config', 'lifecycle.sig'), sig)
  }

  beforeEach(() => mkdirSync(tlsDir()))

  it('is over the canonical JSON of namespace, name and spec', () => {
    const spec = parseConfig(probe('one')).value
    expect(signedBytes({ ...place, spec }).toString()).toBe(
      '{"name":"postgres","namespace":"shop","spec":{"probes":[{"name":"one","tcp":{"port":1}}]}}',
    )
  })

  it('a configuration comes into force, and its formatting does not count', () => {
    const { publicKey, privateKey } = pair()
    trust(publicKey)
    write(JSON.stringify(parseConfig(probe('one')).value), `${signed(probe('one'), privateKey)}\n`)
    expect(open({ signature: signature() }).events).toEqual(['one'])
    expect(JSON.parse(readFileSync(join(stateDir(), 'config.json'), 'utf8')).signed).toBe(true)
  })

  it('a configuration comes into force by either of two keys while they are rotated', () => {
    const [old, next] = [pair(), pair()]
    trust(old.publicKey, next.publicKey)
    write(probe('one'), signed(probe('one'), next.privateKey))
    expect(open({ signature: signature() }).events).toEqual(['one'])
  })

  it('a configuration comes into force as soon as its key is trusted', async () => {
    const [old, next] = [pair(), pair()]
    trust(old.publicKey)
    write(probe('one'), signed(probe('one'), next.privateKey))
    const { store } = open({ signature: signature() })
    expect(store.refused()).toContain('the signature is not by a known key')
    trust(old.publicKey, next.publicKey)
    expect(await clock.until(() => store.current() !== undefined, 5000)).toBe(true)
  })

  it.each<[string, (key: KeyObject) => [string, string], string]>([
    ['of another content', key => [probe('two'), signed(probe('one'), key)], 'not of this content'],
    [
      'of another namespace',
      key => [probe('one'), signed(probe('one'), key, { ...place, namespace: 'other' })],
      'not for shop/postgres',
    ],
    [
      'of another lifecycle',
      key => [probe('one'), signed(probe('one'), key, { ...place, name: 'redis' })],
      'not for shop/postgres',
    ],
    ['of somebody else', () => [probe('one'), signed(probe('one'), pair().privateKey)], 'not by a known key'],
    ['that is none', () => [probe('one'), 'x'], 'not base64 of 64 bytes'],
    ['that is empty', () => [probe('one'), ''], 'not base64 of 64 bytes'],
  ])('%s a configuration is refused', (_, make, reason) => {
    const { publicKey, privateKey } = pair()
    trust(publicKey)
    write(...make(privateKey))
    const { store } = open({ signature: signature() })
    expect(store.current()).toBeUndefined()
    expect(store.refused()).toContain(reason)
  })

  it('that is missing, as well as a key that is, is named', () => {
    const { publicKey, privateKey } = pair()
    writeFileSync(file(), probe('one'))
    expect(open({ signature: signature() }).store.refused()).toContain('lifecycle.sig is missing')
    write(probe('one'), signed(probe('one'), privateKey))
    expect(open({ signature: signature() }).store.refused()).toContain('lifecycle.pub is missing')
    writeFileSync(join(tlsDir(), 'lifecycle.pub'), 'nothing')
    expect(open({ signature: signature() }).store.refused()).toContain('no Ed25519 key')
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
    trust(rsa.publicKey)
    expect(open({ signature: signature() }).store.refused()).toContain('no Ed25519 key')
    trust(rsa.publicKey, publicKey)
    expect(open({ signature: signature() }).store.refused()).toBeUndefined()
  })

  it('what was kept without one is not used', () => {
    writeFileSync(file(), probe('one'))
    open().store.stop()
    expect(open({ signature: signature() }).store.current()).toBeUndefined()
  })

  it('and the content change together, as in a ConfigMap', async () => {
    const { publicKey, privateKey } = pair()
    trust(publicKey)
    const files = (name: string) => ({
      'lifecycle.yaml': probe(name),
      'lifecycle.sig': signed(probe(name), privateKey),
    })
    mount('0', files('n0'))
    const { store, events } = open({ signature: signature(), clock: systemClock })
    for (let n = 1; n <= 20; n++) {
      mount(String(n), files(`n${n}`))
      await vi.waitFor(() => expect(store.current()?.spec.probes?.[0]?.name).toBe(`n${n}`), 30_000)
    }
    expect(events).toEqual(Array.from({ length: 21 }, (_, n) => `n${n}`))
  })
})

it.skipIf(process.getuid?.() === 0)('a file that may not be read is refused with its reason', () => {
  writeFileSync(file(), probe('one'))
  chmodSync(file(), 0)
  expect(open().store.refused()).toContain('EACCES')
})
