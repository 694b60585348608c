/**
 * Real sidecars under mTLS with certificates of the controller's own making, and the controller's side of them. Everything ends with the test.
 */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import type { AppRef, PodAddress } from '../../../controller/app/agents/address.ts'
import { type Agents, type AgentsOptions, createAgents } from '../../../controller/app/agents/agents.ts'
import type { Why } from '../../../controller/app/agents/connection.ts'
import type { AgentCredentials, AgentCredentialsSource } from '../../../controller/app/agents/credentials.ts'
import { createSigningKey, signedConfig } from '../../../controller/app/trust/signing.ts'
import { createAuthority, issue } from '../../../shared/authority.ts'
import type { Pair } from '../../../shared/certificate.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { createLog } from '../../../shared/log.ts'
import type { PutRun } from '../../../shared/protocol/schemas.ts'
import { newFolder } from '../../fixtures/running-agent.ts'

export const app: AppRef = { namespace: 'shop', name: 'orders' }
const span = () => ({ from: Date.now() - 300_000, until: Date.now() + 3_600_000 })

export interface Authorities {
  readonly authority: Pair
  readonly key: ReturnType<typeof createSigningKey>
}

export const newAuthorities = (): Authorities => ({ authority: createAuthority(span()), key: createSigningKey() })

export const clientOf = ({ authority }: Authorities, ca: readonly Pair[] = [authority]): AgentCredentials => ({
  ...issue(authority, 'client', { dns: ['controller.shipmate.dev'] }, span()),
  ca: ca.map(({ cert }) => cert),
})

export const serverOf = ({ authority }: Authorities, name = 'orders.shop.sidecar.shipmate.dev') =>
  issue(authority, 'server', { dns: [name] }, span())

export interface Credentials extends AgentCredentialsSource {
  use(credentials: AgentCredentials): void
}

export function credentialsFrom(first: AgentCredentials | undefined): Credentials {
  let current = first
  const listeners = new Set<() => void>()
  return {
    current: () => current,
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    use(next) {
      current = next
      for (const listener of listeners) listener()
    },
  }
}

/** A tls-dir as Kubernetes mounts a Secret, which is exchanged in one move. */
function mount(folder: string, trust: Authorities, ca: readonly Pair[] = [trust.authority]) {
  const tlsDir = join(folder, 'tls')
  mkdirSync(tlsDir, { recursive: true })
  let version = 0
  const put = (by: Authorities, bundle: readonly Pair[]) => {
    const { cert, key } = serverOf(by)
    const files = {
      ...{ 'tls.crt': cert, 'tls.key': key, 'ca.crt': bundle.map(({ cert }) => cert).join('') },
      'lifecycle.pub': trust.key.public,
    }
    const place = `..v${++version}`
    mkdirSync(join(tlsDir, place))
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(tlsDir, place, name), text)
      if (version === 1) symlinkSync(join('..data', name), join(tlsDir, name))
    }
    rmSync(join(tlsDir, '..new'), { force: true })
    symlinkSync(place, join(tlsDir, '..new'))
    renameSync(join(tlsDir, '..new'), join(tlsDir, '..data'))
  }
  put(trust, ca)
  return { tlsDir, put }
}

/** A folder with what a sidecar under mTLS needs, besides its lifecycle itself. */
export function prepare(trust: Authorities, spec: LifecycleSpec, ca?: readonly Pair[]) {
  const folder = newFolder()
  const data = signedConfig({ namespace: 'shop', name: 'postgres', spec }, trust.key)
  writeFileSync(join(folder, 'lifecycle.sig'), data['lifecycle.sig'])
  return { folder, ...mount(folder, trust, ca) }
}

export interface Controller {
  readonly agents: Agents
  readonly told: Why[]
  readonly lines: string[]
}

export function control(credentials: AgentCredentialsSource, options: Partial<AgentsOptions> = {}): Controller {
  const told: Why[] = []
  const lines: string[] = []
  const { logger: log } = createLog({ level: 'debug', destination: { write: line => void lines.push(line) } })
  const agents = createAgents({ credentials, onChange: (_app, why) => told.push(why), log, ...options })
  onTestFinished(() => agents.close())
  return { agents, told, lines }
}

export const addressOf = (where: string | number | undefined, uid = 'pod-uid'): PodAddress => ({
  app,
  pod: { name: 'orders-0', uid },
  ip: '127.0.0.1',
  port: Number(String(where).split(':').at(-1)),
})

export const until = (look: () => unknown) =>
  vi.waitFor(
    () => {
      if (!look()) throw new Error('it is not so')
    },
    { timeout: 20_000, interval: 5 },
  )

/** What a PUT needs beside the action. */
export async function aimed(agents: Agents, pod: PodAddress, body: PutRun): Promise<PutRun> {
  const { configHash, journalId, fence } = await agents.state(pod)
  return { podUid: pod.pod.uid, configHash, journalId, fence: fence + 1, ...body }
}
