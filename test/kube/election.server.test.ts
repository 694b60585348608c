import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { authenticated } from '../../controller/kube/auth.ts'
import { Client } from '../../controller/kube/client.ts'
import { createConnection } from '../../controller/kube/connection.ts'
import { createElection } from '../../controller/kube/election.ts'
import { ConfigMap, Lease, Namespace } from '../../controller/kube/kinds.ts'
import { credentialsFrom } from '../../controller/kube/kubeconfig.ts'
import { intercept, type Send } from '../../controller/kube/transport.ts'

const kubeconfig = inject('kubeconfig')
const fast = { leaseDuration: 6_000, renewDeadline: 4_000, retryPeriod: 400 }
const patience = { timeout: 30_000, interval: 20 }

describe.skipIf(!kubeconfig)('an election by a real server', () => {
  const connection = createConnection()
  let send: Send
  let namespace: string
  let client: Client

  beforeAll(async () => {
    send = authenticated(connection, credentialsFrom({ file: kubeconfig }))
    const made = await new Client(send).create(Namespace, { metadata: { generateName: 'election-' } })
    namespace = made.metadata.name
    client = new Client(send, { namespace })
  })
  afterAll(() => connection.close())

  /** Takes part until the test is over. */
  function join(name: string, identity: string) {
    const stop = new AbortController()
    const terms: AbortSignal[] = []
    const election = createElection(client, { ...fast, name, identity })
    const ended = election.run(
      signal =>
        new Promise(resolve => {
          terms.push(signal)
          signal.addEventListener('abort', () => resolve())
        }),
      stop.signal,
    )
    const leave = () => {
      stop.abort()
      return ended
    }
    onTestFinished(leave)
    return { election, terms, leave }
  }

  it('has one leader; when that one leaves, the lease is free and the next one leads', async () => {
    const a = join('handover', 'a')
    await vi.waitUntil(() => a.election.isLeading(), patience)
    const b = join('handover', 'b')
    await vi.waitUntil(() => b.election.leader() === 'a', patience)
    expect(await client.get(Lease, { name: 'handover' })).toMatchObject({
      spec: { holderIdentity: 'a', leaseDurationSeconds: 6, leaseTransitions: 0 },
    })
    expect(b.terms).toHaveLength(0)
    await a.leave()
    expect(a.terms[0]?.aborted).toBe(true)
    await vi.waitUntil(() => b.election.isLeading(), patience)
    const lease = await client.get(Lease, { name: 'handover' })
    expect(lease.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 })
    await b.leave()
    expect((await client.get(Lease, { name: 'handover' })).spec).toMatchObject({
      holderIdentity: '',
      leaseDurationSeconds: 1,
    })
  })

  it("goes on through somebody else's edit and a deletion of the lease", async () => {
    const a = join('touched', 'a')
    await vi.waitUntil(() => a.election.isLeading(), patience)
    await client.patch(Lease, { name: 'touched' }, { merge: { metadata: { labels: { touched: 'yes' } } } })
    const { metadata } = await client.get(Lease, { name: 'touched' })
    await vi.waitUntil(
      async () => (await client.get(Lease, { name: 'touched' })).metadata.resourceVersion !== metadata.resourceVersion,
      patience,
    )
    expect((await client.get(Lease, { name: 'touched' })).metadata.labels).toEqual({ touched: 'yes' })
    await client.delete(Lease, { name: 'touched' })
    const again = await vi.waitUntil(() => client.find(Lease, { name: 'touched' }), patience)
    expect(again.metadata.uid).not.toBe(metadata.uid)
    expect(again.spec?.holderIdentity).toBe('a')
    expect(a.terms).toHaveLength(1)
    expect(a.terms[0]?.aborted).toBe(false)
  })

  it('is lost to somebody who overwrites the lease, and won back when that one is silent', async () => {
    const a = join('stolen', 'a')
    await vi.waitUntil(() => a.election.isLeading(), patience)
    await client.patch(Lease, { name: 'stolen' }, { merge: { spec: { holderIdentity: 'thief' } } })
    await vi.waitUntil(() => a.terms[0]?.aborted, patience)
    expect(a.terms[0]?.reason).toMatchObject({ code: 'NotLeading' })
    await vi.waitUntil(() => a.terms.length === 2, patience)
  })

  it('is refused without rights, and goes on asking', async () => {
    const asked: number[] = []
    const asNobody = intercept(send, next => async request => {
      const response = await next({ ...request, headers: { ...request.headers, 'impersonate-user': 'nobody' } })
      asked.push(response.status)
      return response
    })
    const warnings: unknown[] = []
    const log = { debug: () => {}, info: () => {}, warn: (what: unknown) => void warnings.push(what) }
    const stop = new AbortController()
    const election = createElection(new Client(asNobody, { namespace }), { ...fast, name: 'refused', log })
    const ended = election.run(async () => {}, stop.signal)
    await vi.waitUntil(() => asked.length >= 2, patience)
    stop.abort()
    await ended
    expect(asked.every(status => status === 403)).toBe(true)
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatchObject({
      error: expect.stringContaining('the missing rule is {apiGroups: ["coordination.k8s.io"]'),
    })
  })

  it('takes the lead from a process that was stopped, which on waking writes no more and knows', async () => {
    const first = start('frozen', 'first')
    await first.says({ is: 'leading' })
    first.tell('write')
    await first.says({ is: 'written' })
    const second = start('frozen', 'second')
    await vi.waitUntil(async () => (await client.get(ConfigMap, { name: 'work' })).data?.by === 'first', patience)

    first.child.kill('SIGSTOP')
    await second.says({ is: 'leading' })
    second.tell('write')
    await second.says({ is: 'written' })
    const work = await client.get(ConfigMap, { name: 'work' })
    expect(work.data).toEqual({ by: 'second' })

    // It finds this when it wakes, as work that was about to write.
    first.tell('write')
    first.child.kill('SIGCONT')
    await first.says({ is: 'ending', code: 'NotLeading' })
    await first.says({ is: 'refused', code: 'NotLeading' })
    expect((await client.get(ConfigMap, { name: 'work' })).metadata.resourceVersion).toBe(work.metadata.resourceVersion)

    // It goes on as one that waits, and leads again when the other leaves.
    expect(first.child.exitCode).toBe(null)
    second.tell('stop')
    await second.says({ is: 'ended' })
    await vi.waitUntil(() => first.said.filter(line => line.is === 'leading').length === 2, patience)
    first.tell('stop')
    await first.says({ is: 'ended' })
    expect((await client.get(Lease, { name: 'frozen' })).spec?.holderIdentity).toBe('')
  })

  /** The same, as a process of its own. */
  function start(name: string, identity: string) {
    const program = fileURLToPath(new URL('../fixtures/contender.ts', import.meta.url))
    const child: ChildProcess = spawn(process.execPath, [program, kubeconfig, namespace, name, identity], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const said: { is: string; code?: string }[] = []
    if (child.stdout) createInterface({ input: child.stdout }).on('line', line => said.push(JSON.parse(line)))
    const gone = new Promise(resolve => child.once('exit', resolve))
    onTestFinished(async () => {
      child.kill('SIGKILL')
      await gone
    })
    return {
      child,
      said,
      tell: (word: string) => child.stdin?.write(`${word}\n`),
      says: (what: { is: string; code?: string }) => vi.waitFor(() => expect(said).toContainEqual(what), patience),
    }
  }
})
