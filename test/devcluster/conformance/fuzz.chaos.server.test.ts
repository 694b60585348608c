/**
 * The promise: the same requests are answered by the embedded API server as by a real one, and leave the same objects.
 *
 * Each seed is three sequences of random requests about one kind, sent to both; their answers are compared step by step, then what a watch tells of all of it. What
 * no two servers share (uids, times, versions, addresses) is compared by what it stands for. Replay a seed with SHIPMATE_SEED=N: what is printed is the
 * sequence up to the first difference.
 */
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { authenticated } from '../../../controller/kube/auth.ts'
import { createConnection } from '../../../controller/kube/connection.ts'
import { credentialsFrom } from '../../../controller/kube/kubeconfig.ts'
import { createKubernetes } from '../../../devcluster/api/kubernetes.ts'
import { sendTo } from '../../../devcluster/api/send.ts'
import { definition } from './kinds.ts'
import { type Difference, play, type Sequence, sequenceOf } from './play.ts'
import { type Server, serverOver } from './servers.ts'

const kubeconfig = inject('kubeconfig')
const first = Number(process.env.SHIPMATE_SEED ?? 1)
const schedules = Number(process.env.SHIPMATE_SCHEDULES ?? 20)
/** Sequences are short: each schedule has several. */
const each = 3
const sequences = schedules * each
const atOnce = 6
const stamp = Date.now().toString(36)

describe.skipIf(!kubeconfig)('the embedded API server and a real one', () => {
  // The real one, too, runs without the plugin that gives pods their accounts.
  const api = createKubernetes({ serviceAccounts: false })
  const connection = createConnection()
  const here = serverOver(sendTo(api))
  let there: Server
  const known = new Map<string, number>()
  const failures: string[] = []

  beforeAll(async () => {
    there = serverOver(authenticated(connection, credentialsFrom({ file: kubeconfig })))
    for (const server of [here, there]) {
      await server.ask('POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
      const path = 'GET /apis/conformance.example/v1/namespaces/default/gears'
      await vi.waitFor(async () => expect((await server.ask(path)).status).toBe(200), 30_000)
    }
  })
  afterAll(async () => {
    await connection.close()
    await api.close()
  })

  async function run(seed: number): Promise<void> {
    const sequence = sequenceOf(seed)
    const difference = await play(here, there, sequence, `s${seed}-${stamp}`)
    if (!difference) return
    if (difference.known) known.set(difference.known, (known.get(difference.known) ?? 0) + 1)
    else failures.push(report(seed, sequence, difference))
  }

  test(`answer alike, over ${sequences} sequences from seed ${first}`, { timeout: 7_200_000 }, async () => {
    let next = (first - 1) * each + 1
    const end = next + sequences
    const worker = async () => {
      while (next < end) await run(next++)
    }
    await Promise.all(Array.from({ length: Math.min(atOnce, sequences) }, worker))
    for (const [words, count] of known) console.log(`${count} of ${sequences} sequences ended early: ${words}`)
    expect(failures.length, failures.slice(0, 5).join('\n\n')).toBe(0)
  })
})

function report(seed: number, { kind, steps }: Sequence, { at, sent, what }: Difference): string {
  const schedule = Math.ceil(seed / each)
  const prefix = steps.slice(0, at + 1).map(({ what: name }, index) => `    ${index + 1}. ${name}`)
  return [
    `seed ${schedule}, ${kind.kind}, after ${at + 1} steps: ${sent ? `${sent.line} ${JSON.stringify(sent.body)}` : 'what a watch told'}`,
    ...what.slice(0, 8).map(line => `  ${line}`),
    '  the sequence:',
    ...prefix,
    `  replay: SHIPMATE_SEED=${schedule} npx vitest run --project server test/devcluster/conformance/fuzz.chaos.server.test.ts`,
  ].join('\n')
}
