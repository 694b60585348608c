import { execFileSync, spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { planAppSecret, readAppSecret, secretNameOf } from '../../../controller/app/trust/app-secret.ts'
import { usualLifetimes } from '../../../controller/app/trust/lifetimes.ts'
import { emptyRoot, parseRoot, planRoot, type RootDocument } from '../../../controller/app/trust/root.ts'
import { createSigningKey, signedConfig } from '../../../controller/app/trust/signing.ts'
import { appUidLabel } from '../../../controller/app/workload/marks.ts'
import { createAuthority, issue } from '../../../shared/authority.ts'
import { jsonProblem } from '../../../shared/canonical.ts'
import { parseConfig } from '../../../sidecar/config/parse.ts'
import { signatureProblem } from '../../../sidecar/config/signature.ts'

const now = Date.UTC(2026, 10, 18)
const span = { from: now - 300_000, until: now + 30 * 86_400_000 }
const name = 'orders.shop.sidecar.shipmate.dev'
const hasOpenssl = spawnSync('openssl', ['version']).status === 0

describe('certificates', () => {
  it('are for one side of TLS, under one name, and hold no longer than their authority', () => {
    const authority = createAuthority(span)
    const parent = new X509Certificate(authority.cert)
    expect(parent.ca).toBe(true)
    const server = new X509Certificate(
      issue(authority, 'server', { dns: [name] }, { ...span, until: span.until + 1e9 }).cert,
    )
    const client = new X509Certificate(issue(authority, 'client', { dns: ['controller.shipmate.dev'] }, span).cert)
    for (const one of [server, client]) {
      expect(one.ca).toBe(false)
      expect(one.checkIssued(parent) && one.verify(parent.publicKey)).toBe(true)
      expect(Date.parse(one.validTo)).toBeLessThanOrEqual(Date.parse(parent.validTo))
      expect(Date.parse(one.validFrom)).toBe(now - 300_000)
    }
    expect([server.subjectAltName, server.keyUsage]).toEqual([`DNS:${name}`, ['1.3.6.1.5.5.7.3.1']])
    expect([client.subjectAltName, client.keyUsage]).toEqual(['DNS:controller.shipmate.dev', ['1.3.6.1.5.5.7.3.2']])
    expect(server.verify(new X509Certificate(createAuthority(span).cert).publicKey)).toBe(false)
  })

  it('can be written for any time', () => {
    for (const until of [Date.UTC(2049, 11, 31, 23, 59, 59), Date.UTC(2050, 0, 1), Date.UTC(2120, 0, 1)]) {
      expect(Date.parse(new X509Certificate(createAuthority({ from: now, until }).cert).validTo)).toBe(until)
    }
  })

  it.skipIf(!hasOpenssl)(
    `are what OpenSSL accepts when it is strict${hasOpenssl ? '' : ' (skipped: no openssl)'}`,
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'shipmate-'))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
      const authority = createAuthority(span)
      const files = { 'ca.crt': authority.cert, 'server.crt': issue(authority, 'server', { dns: [name] }, span).cert }
      for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text)
      const verify = (purpose: string) =>
        spawnSync(
          'openssl',
          [
            'verify',
            '-x509_strict',
            '-attime',
            String(now / 1000),
            '-purpose',
            purpose,
            '-verify_hostname',
            name,
            '-CAfile',
            'ca.crt',
            'server.crt',
          ],
          { cwd: folder, encoding: 'utf8' },
        )
      expect(verify('sslserver').stdout).toBe('server.crt: OK\n')
      expect(verify('sslclient').status).not.toBe(0)
      expect(String(execFileSync('openssl', ['asn1parse', '-in', join(folder, 'server.crt')]))).not.toContain('Error')
    },
  )
})

describe("an app's Secret", () => {
  const app = { namespace: 'shop', name: 'orders', uid: 'uid' }
  const root = planRoot(now, emptyRoot, [], [], usualLifetimes).next as RootDocument
  const written = (secret?: object) => {
    const plan = planAppSecret(now, root, app, secret as never, usualLifetimes)
    if (plan.do !== 'write') throw new Error(`it says ${plan.do}`)
    return plan.secret
  }

  it('has a certificate, whom to believe, and no other secret than its own key', () => {
    const { metadata, data = {} } = written()
    expect(metadata).toMatchObject({
      name: secretNameOf('orders'),
      namespace: 'shop',
      labels: { [appUidLabel]: 'uid' },
    })
    expect(Object.keys(data).sort()).toEqual(['ca.crt', 'lifecycle.pub', 'tls.crt', 'tls.key'])
    const text = Buffer.from(
      Object.entries(data)
        .filter(([file]) => file !== 'tls.key')
        .map(([, value]) => value)
        .join(''),
      'base64',
    )
    expect(String(text)).not.toContain('PRIVATE')
    expect(planAppSecret(now, root, app, { metadata, data } as never, usualLifetimes)).toMatchObject({ do: 'nothing' })
  })

  it('is written anew when it is damaged, of another app, of another authority, or its time has come', () => {
    const good = written()
    const reissued = (data: object, at = now, who = app) => {
      const secret = { metadata: good.metadata, data: { ...good.data, ...data } }
      const plan = planAppSecret(at, root, who, secret as never, usualLifetimes)
      return plan.do === 'write' && plan.secret.data?.['tls.crt'] !== good.data?.['tls.crt']
    }
    expect(reissued({})).toBe(false)
    expect(reissued({ 'tls.crt': '' })).toBe(true)
    expect(reissued({ 'tls.key': written().data?.['tls.key'] })).toBe(true)
    expect(reissued({}, now, { ...app, name: 'billing' })).toBe(true)
    expect(reissued({}, now + 21 * 86_400_000)).toBe(true)
    const foreign = issue(createAuthority(span), 'server', { dns: [name] }, span)
    const encode = (text: string) => Buffer.from(text).toString('base64')
    expect(reissued({ 'tls.crt': encode(foreign.cert), 'tls.key': encode(foreign.key) })).toBe(true)
    const [authority] = root.authorities
    const client = issue({ cert: authority?.cert ?? '', key: authority?.key ?? '' }, 'client', { dns: [name] }, span)
    expect(reissued({ 'tls.crt': encode(client.cert), 'tls.key': encode(client.key) })).toBe(true)
    expect(readAppSecret(root, app, { metadata: good.metadata, data: { 'ca.crt': 'AAAA' } } as never)).toMatchObject({
      server: undefined,
    })
  })

  it('is left alone where the name is somebody else’s', () => {
    const secret = { metadata: { name: secretNameOf('orders'), namespace: 'shop' }, data: {} }
    expect(planAppSecret(now, root, app, secret as never, usualLifetimes)).toMatchObject({ do: 'refuse' })
  })

  it('comes from a root that is read whole or not at all', () => {
    expect(parseRoot(JSON.stringify(root))).toEqual(root)
    for (const text of ['', '{}', JSON.stringify({ ...root, keys: [{ ...root.keys[0], id: 'x' }] })]) {
      expect(() => parseRoot(text)).toThrow('the root of trust cannot be read')
    }
  })
})

describe('a signed lifecycle', () => {
  it('is what the sidecar accepts, for this content, namespace, name and key alone', () => {
    const key = createSigningKey()
    const other = createSigningKey()
    fc.assert(
      fc.property(
        // What no configuration may hold is refused before its signature is looked at.
        fc
          .dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.jsonValue())
          .filter(spec => jsonProblem(spec) === undefined),
        fc.stringMatching(/^[a-z-]{1,10}$/),
        (spec, lifecycle) => {
          const signed = { namespace: 'shop', name: lifecycle, spec }
          const data = signedConfig(signed, key)
          // As the sidecar has it: what it parsed from the file.
          const read = { ...signed, spec: parseConfig(data['lifecycle.yaml']).value }
          const keys = other.public + key.public
          expect(signatureProblem(read, data['lifecycle.sig'], keys)).toBeUndefined()
          expect(signatureProblem(read, data['lifecycle.sig'], other.public)).toBeDefined()
          expect(signatureProblem({ ...read, namespace: 'other' }, data['lifecycle.sig'], keys)).toBeDefined()
          expect(signatureProblem({ ...read, name: `${lifecycle}x` }, data['lifecycle.sig'], keys)).toBeDefined()
          expect(
            signatureProblem({ ...read, spec: { ...spec, x: 1, y: 2 } }, data['lifecycle.sig'], keys),
          ).toBeDefined()
        },
      ),
      { numRuns: 100 },
    )
  })
})
