import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createDiscovery } from '../../controller/kube/discovery.ts'
import { Aborted, BadRequest, Forbidden, NotFound } from '../../controller/kube/errors.ts'
import { type ExecOptions, exec, execStream } from '../../controller/kube/exec.ts'
import { type Cluster, useCluster } from '../fixtures/pods.ts'

const kubeconfig = inject('kubeconfig')

describe.skipIf(!kubeconfig)('exec on a real node', () => {
  let cluster: Cluster
  let one: { name: string; namespace: string }
  let two: { name: string; namespace: string }
  const run = (command: string[], options: Partial<ExecOptions> = {}) =>
    exec(cluster.source, one, { command, ...options })

  beforeAll(async () => {
    cluster = await useCluster(kubeconfig)
    const named = (name: string) => ({ command: ['sh', '-c', `echo ${name} >/tmp/name; exec sleep infinity`] })
    ;[one, two] = await Promise.all([
      cluster.run('one', { main: {} }),
      cluster.run('two', { main: named('main'), side: named('side') }),
    ])
  }, 120_000)
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  it('gives what the command wrote, stderr apart, and its exit code', async () => {
    expect(await run(['sh', '-c', 'echo out; echo err >&2'])).toEqual({
      exitCode: 0,
      stdout: 'out\n',
      stderr: 'err\n',
      truncated: false,
    })
    expect(await run(['sh', '-c', 'echo bye; exit 3'])).toMatchObject({ exitCode: 3, stdout: 'bye\n' })
    expect(await run(['sh', '-c', 'kill -TERM $$'])).toMatchObject({ exitCode: 128 + 15 })
    expect(await run(['true'])).toEqual({ exitCode: 0, stdout: '', stderr: '', truncated: false })
  })

  it('hands over arguments as they are', async () => {
    const words = ['a b', "'", '"', '$HOME', '&x=y', 'ü🚢', '', '-n', '%41+']
    const { stdout } = await run(['node', '-p', 'JSON.stringify(process.argv.slice(1))', '--', ...words])
    expect(JSON.parse(stdout)).toEqual(words)
  })

  it('gives the command its input, and the end of it', async () => {
    expect(await run(['cat'], { stdin: 'hällo 🚢' })).toMatchObject({ exitCode: 0, stdout: 'hällo 🚢' })
    expect(await run(['cat'], { stdin: '' })).toMatchObject({ exitCode: 0, stdout: '' })
    expect(await run(['wc', '-c'])).toMatchObject({ stdout: '0\n' })
  })

  it('carries megabytes of input unharmed', async () => {
    const pieces = Array.from({ length: 80 }, () => randomBytes(128 << 10))
    async function* stdin() {
      yield* pieces
    }
    const sum = createHash('sha256').update(Buffer.concat(pieces)).digest('hex')
    expect((await run(['sha256sum'], { stdin: stdin() })).stdout).toBe(`${sum}  -\n`)
  })

  it('does not mind a command that leaves its input unread', async () => {
    expect(await run(['true'], { stdin: Buffer.alloc(32 << 10) })).toMatchObject({ exitCode: 0 })
  })

  it('keeps a megabyte of ten, and the exit code', async () => {
    const result = await run(['sh', '-c', "head -c 10000000 /dev/zero | tr '\\0' x; exit 7"])
    expect(result).toMatchObject({ exitCode: 7, truncated: true, stderr: '' })
    expect(result.stdout).toBe('x'.repeat(1 << 20))
  })

  it('carries megabytes of output unharmed to whoever reads as it comes, however slowly', async () => {
    const hash = createHash('sha256')
    const exitCode = await execStream(cluster.source, one, {
      command: ['sh', '-c', 'head -c 10000000 /dev/urandom | tee /tmp/random'],
      onStdout: async piece => {
        hash.update(piece)
        await new Promise(setImmediate)
      },
    })
    expect(exitCode).toBe(0)
    expect((await run(['sha256sum', '/tmp/random'])).stdout).toBe(`${hash.digest('hex')}  /tmp/random\n`)
  })

  it('keeps characters whole that come in pieces', async () => {
    const text = 'äöü€🚢'.repeat(10_000)
    expect((await run(['cat'], { stdin: text })).stdout).toBe(text)
    const cut = await run(['cat'], { stdin: text, maxOutput: 1001 })
    expect(cut.truncated).toBe(true)
    expect(text.startsWith(cut.stdout)).toBe(true)
    expect(Buffer.byteLength(cut.stdout)).toBeGreaterThan(997)
  })

  it('gives a terminal where one is wanted', async () => {
    const { stdout, stderr } = await run(['sh', '-c', 'test -t 1 && echo yes; echo err >&2'], { tty: true })
    expect({ stdout, stderr }).toEqual({ stdout: 'yes\r\nerr\r\n', stderr: '' })
  })

  it('finds the container by its name', async () => {
    for (const container of ['main', 'side']) {
      expect((await exec(cluster.source, two, { container, command: ['cat', '/tmp/name'] })).stdout).toBe(
        `${container}\n`,
      )
    }
  })

  it('names the containers where the name is missing or wrong', async () => {
    const none = exec(cluster.source, two, { command: ['true'] })
    await expect(none).rejects.toBeInstanceOf(BadRequest)
    await expect(none).rejects.toThrow('choose one of: [main side]')
    const wrong = exec(cluster.source, two, { container: 'nope', command: ['true'] })
    await expect(wrong).rejects.toBeInstanceOf(BadRequest)
    await expect(wrong).rejects.toThrow(/container nope is not valid for pod two; it has: main, side$/)
  })

  it('says so when the command cannot be started', async () => {
    const failing = run(['no-such-program'])
    await expect(failing).rejects.toMatchObject({ code: 'ExecFailed' })
    await expect(failing).rejects.toThrow(/"no-such-program": executable file not found/)
  })

  it('says so when there is no such pod', async () => {
    await expect(exec(cluster.source, { ...one, name: 'nope' }, { command: ['true'] })).rejects.toBeInstanceOf(NotFound)
  })

  it('ends on our side at once when aborted', async () => {
    const stop = new AbortController()
    const running = execStream(cluster.source, one, {
      command: ['sh', '-c', 'echo started; sleep 3600'],
      onStdout: () => stop.abort('enough'),
      signal: stop.signal,
    })
    await expect(running).rejects.toBeInstanceOf(Aborted)
  })

  it('names the rule that whoever may not is missing', async () => {
    const error = await exec(await cluster.as('nobody'), one, { command: ['true'] }).catch(error => error)
    expect(error).toBeInstanceOf(Forbidden)
    expect(error.rule).toMatchObject({ apiGroups: [''], resources: ['pods/exec'] })
    expect(error.message).toContain(`cannot ${error.rule.verbs[0]} resource "pods/exec"`)
  })

  it('names the rule that the server does not name itself', async ({ skip }) => {
    const { minor } = await createDiscovery(cluster.client).version()
    skip(Number.parseInt(minor, 10) < 35, 'older servers are content with the verb get')
    const rule = { apiGroups: [''], resources: ['pods/exec'], verbs: ['get'] }
    const half = await cluster.as('half', [rule])
    const error = await exec(half, one, { command: ['true'] }).catch(error => error)
    expect(error).toBeInstanceOf(Forbidden)
    expect(error.rule).toEqual({ ...rule, verbs: ['create'] })
    const whole = await cluster.as('whole', [{ ...rule, verbs: ['get', 'create'] }])
    expect(await exec(whole, one, { command: ['true'] })).toMatchObject({ exitCode: 0 })
  })
})
