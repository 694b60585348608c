import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { Aborted, BadRequest, NotFound } from '../../controller/kube/errors.ts'
import { exec } from '../../controller/kube/exec.ts'
import { type LogLinesOptions, logLines, logs } from '../../controller/kube/logs.ts'
import { type Cluster, useCluster } from '../fixtures/pods.ts'

const kubeconfig = inject('kubeconfig')
const ships = '🚢'.repeat(10_000)

describe.skipIf(!kubeconfig)('logs on a real node', () => {
  let cluster: Cluster
  const ref = (name: string) => ({ name, namespace: cluster.namespace })

  async function lines(name: string, options: LogLinesOptions = {}): Promise<string[]> {
    const all: string[] = []
    for await (const line of logLines(cluster.client, ref(name), options)) all.push(line)
    return all
  }

  beforeAll(async () => {
    cluster = await useCluster(kubeconfig)
    const print = `for i in $(seq 1 100); do echo "line $i"; done; printf '%s\\n' '${'🚢'.repeat(100)}'`
    const long = `process.stdout.write('🚢'.repeat(10000) + '\\nend\\n')`
    // Says something each time that somebody touches a file, and ends when asked to.
    const talk =
      'trap "exit 0" TERM; while :; do if [ -e /tmp/say ]; then cat /tmp/say; rm /tmp/say; fi; sleep 0.05; done'
    // Lives twice: the second time it goes on.
    const twice =
      'if [ -e /shared/lived ]; then echo second; exec sleep infinity; fi; echo first; touch /shared/lived; exit 1'
    const shared = { volumeMounts: [{ name: 'shared', mountPath: '/shared' }] }
    await Promise.all([
      cluster.create('printer', { main: { command: ['sh', '-c', print] } }, { restartPolicy: 'Never' }),
      cluster.create('long', { main: { command: ['node', '-e', long] } }, { restartPolicy: 'Never' }),
      cluster.create(
        'two',
        { a: { command: ['echo', 'from a'] }, b: { command: ['echo', 'from b'] } },
        { restartPolicy: 'Never' },
      ),
      cluster.create(
        'twice',
        { main: { command: ['sh', '-c', twice], ...shared } },
        { volumes: [{ name: 'shared', emptyDir: {} }] },
      ),
      cluster.run('talker', { main: { command: ['sh', '-c', talk] } }, { restartPolicy: 'Never' }),
      cluster.run('silent', { main: {} }),
    ])
    await Promise.all([
      ...['printer', 'long', 'two'].map(name => cluster.until(name, pod => pod.status?.phase === 'Succeeded')),
      cluster.until('twice', pod =>
        pod.status?.containerStatuses?.some(status => status.restartCount > 0 && status.state?.running),
      ),
    ])
  }, 120_000)
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  it('brings all lines, or the last', async () => {
    const all = await lines('printer')
    expect(all).toEqual([...Array.from({ length: 100 }, (_, i) => `line ${i + 1}`), '🚢'.repeat(100)])
    expect(await lines('printer', { tailLines: 3 })).toEqual(all.slice(-3))
    expect(await lines('printer', { tailLines: 0 })).toEqual([])
  })

  it('brings times where they are wanted, and only what is not older', async () => {
    const timed = await lines('printer', { timestamps: true })
    expect(timed).toHaveLength(101)
    expect(timed[0]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z line 1$/)
    expect(await lines('printer', { sinceTime: new Date(Date.now() + 3_600_000) })).toEqual([])
    expect(await lines('printer', { sinceTime: new Date(0) })).toHaveLength(101)
    expect(await lines('printer', { sinceSeconds: 3600, tailLines: 1 })).toHaveLength(1)
  })

  it('brings a long line whole, or in pieces with nothing lost', async () => {
    expect(await lines('long')).toEqual([ships, 'end'])
    const pieces = await lines('long', { longestLine: 1001 })
    expect(pieces.length).toBeGreaterThan(39)
    expect(pieces.join('')).toBe(`${ships}end`)
  })

  it('leaves out a character that the limit cuts', async () => {
    expect(await lines('long', { limitBytes: 4 * 25 + 3 })).toEqual(['🚢'.repeat(25)])
  })

  it('brings bytes as they are', async () => {
    const pieces: Uint8Array[] = []
    for await (const piece of logs(cluster.client, ref('long'))) pieces.push(piece)
    expect(Buffer.concat(pieces).toString()).toBe(`${ships}\nend\n`)
  })

  it("brings a container's last life", async () => {
    expect(await lines('twice', { previous: true })).toEqual(['first'])
    expect(await lines('twice')).toEqual(['second'])
    await expect(lines('talker', { previous: true })).rejects.toBeInstanceOf(BadRequest)
  })

  it('finds the container by its name, and names those that there are', async () => {
    expect(await lines('two', { container: 'b' })).toEqual(['from b'])
    await expect(lines('two')).rejects.toThrow('choose one of: [a b]')
  })

  it('follows a container until it ends', async () => {
    const say = (text: string) =>
      exec(cluster.source, ref('talker'), { command: ['sh', '-c', 'cat >/tmp/new; mv /tmp/new /tmp/say'], stdin: text })
    const heard: string[] = []
    await say('ä1\n')
    for await (const line of logLines(cluster.client, ref('talker'), { follow: true })) {
      heard.push(line)
      if (heard.length === 1) await say('ö2\nü3\n')
      if (heard.length === 3) await exec(cluster.source, ref('talker'), { command: ['kill', '-TERM', '1'] })
    }
    expect(heard).toEqual(['ä1', 'ö2', 'ü3'])
  })

  it('stops following when told to, be the container as silent as it likes', async () => {
    const stop = new AbortController()
    const following = logLines(cluster.client, ref('silent'), { follow: true, signal: stop.signal })[
      Symbol.asyncIterator
    ]()
    const next = following.next()
    stop.abort('enough')
    await expect(next).rejects.toBeInstanceOf(Aborted)

    for await (const line of logLines(cluster.client, ref('twice'), { follow: true })) {
      expect(line).toBe('second')
      break
    }
  })

  it('says so when there is no such pod', async () => {
    await expect(lines('nope')).rejects.toBeInstanceOf(NotFound)
  })
})
