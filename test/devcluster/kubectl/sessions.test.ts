/**
 * What kubectl does with a pod that runs: logs, exec, attach, cp, port-forward, debug.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { type Kubectl, withKubectl } from './kubectl.ts'
import { pod } from './manifests.ts'

const hasTar = existsSync('/usr/bin/tar') || existsSync('/bin/tar')
const hasScript = existsSync('/usr/bin/script')

withKubectl('a pod that runs', of => {
  let kubectl: Kubectl
  beforeAll(async () => {
    kubectl = of()
    const serve = `const http = require("http")
http.createServer((asked, answer) => { let n = 0; asked.on("data", b => { n += b.length }).on("end", () =>
  answer.end("got " + n + " at " + asked.url + (asked.url === "/big" ? "x".repeat(3e6) : ""))) }).listen(8080, process.env.HOST)
process.stdin.on("data", bytes => console.log("heard " + String(bytes).trim()))
console.log("serving")`
    const server = {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'server' } },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            ...{ name: 'main', image: 'none', stdin: true, ports: [{ containerPort: 8080 }] },
            command: [process.execPath, '-e', serve],
            readinessProbe: { httpGet: { port: 8080 } },
          },
        ],
      },
    }
    const file = kubectl.file('pods.yaml', `${pod('box')}\n---\n${JSON.stringify(server)}`)
    await kubectl.ok(`apply -f ${file}`)
    await kubectl.ok('wait --for=condition=Ready pod/box pod/server --timeout=50s')
  })

  it('logs: all of them, the last line, those of one that is followed until it ends', async () => {
    expect(await kubectl.ok('logs server')).toBe('serving\n')
    expect(await kubectl.ok('logs box --tail=1')).toBe('hello from box\n')
    expect(await kubectl.ok('logs server --timestamps')).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z serving\n$/)
    expect(await kubectl.ok('logs -l app=box --prefix')).toBe('[pod/box/main] hello from box\n')
    await kubectl.ok(
      `run counter --image=x --restart=Never --command -- /bin/sh -c 'for i in 1 2 3; do echo $i; sleep 0.2; done'`,
    )
    await kubectl.ok('wait --for=jsonpath={.status.startTime} pod/counter --timeout=30s')
    await expect
      .poll(() => kubectl.run(['logs', '-f', 'counter']), { timeout: 30_000 })
      .toMatchObject({ stdout: '1\n2\n3\n' })
    expect(await kubectl.fails('logs box -c other')).toMatch(/container other is not valid for pod box/)
    expect(await kubectl.fails('logs box --previous')).toMatch(
      /previous terminated container "main" in pod "box" not found/,
    )
  })

  it('exec: its output, its input, its exit code', async () => {
    const spoken = await kubectl.run(['exec', 'box', '--', 'sh', '-c', 'echo out; echo err >&2; exit 3'])
    expect(spoken).toEqual({ code: 3, stdout: 'out\n', stderr: 'err\ncommand terminated with exit code 3\n' })
    expect(await kubectl.run(['exec', '-i', 'box', '--', 'cat'], { input: 'to and fro' })).toEqual({
      ...{ code: 0, stdout: 'to and fro', stderr: '' },
    })
    expect((await kubectl.run(['exec', 'box', '--', 'no-such-program'])).code).toBe(127)
    expect(await kubectl.fails('exec box -c other -- true')).toMatch(/container other is not valid for pod box/)
    expect(await kubectl.fails('exec no-such-pod -- true')).toMatch(/pods "no-such-pod" not found/)
  })

  it('exec: as much as there is, both ways', async () => {
    const input = 'x'.repeat(2_000_000)
    expect((await kubectl.run(['exec', '-i', 'box', '--', 'wc', '-c'], { input })).stdout.trim()).toBe('2000000')
    const { stdout } = await kubectl.run(['exec', 'box', '--', 'head', '-c', '2000000', '/dev/zero'])
    expect(stdout.length).toBe(2_000_000)
  })

  it.skipIf(!hasScript)('exec -t: at a terminal', async () => {
    const { stdout } = await kubectl.run(['exec', '-it', 'box', '--', 'sh', '-c', 'test -t 0 && echo at a terminal'], {
      isAtTerminal: true,
    })
    expect(stdout).toContain('at a terminal\r\n')
  })

  it('attach: what it says from now on, what it is told', async () => {
    const attached = kubectl.start('attach server')
    await attached.until(/try pressing enter/)
    const { stdout } = await kubectl.run(['exec', 'server', '--', 'true'])
    expect(stdout).toBe('')
    const speaking = kubectl.run(['attach', '-i', 'server'], { input: 'ahoy\n' })
    await attached.until(/heard ahoy/)
    attached.child.kill()
    await kubectl.ok('delete pod server --wait=false')
    expect((await speaking).stdout).toContain('heard ahoy')
    await kubectl.ok('wait --for=delete pod/server --timeout=30s')
    await kubectl.ok(`apply -f ${join(kubectl.folder, 'pods.yaml')}`)
    await kubectl.ok('wait --for=condition=Ready pod/server --timeout=50s')
  })

  it('run -i --rm: a pod for one command', async () => {
    const line = ['run', 'once', '-i', '--rm', '--restart=Never', '--image=x', '--command', '--', 'sh', '-c']
    const spoken = await kubectl.run([...line, 'read word; echo "read $word"; exit 4'], { input: 'something\n' })
    expect(spoken.stdout).toContain('read something\n')
    expect(spoken.code).toBe(4)
    expect(await kubectl.fails('get pod once')).toMatch(/pods "once" not found/)
  })

  it.skipIf(!hasTar)('cp: there and back', async () => {
    const text = 'some text\n'.repeat(10_000)
    writeFileSync(join(kubectl.folder, 'there.txt'), text)
    const inside = join(kubectl.folder, `inside-${kubectl.namespace}.txt`)
    await kubectl.ok(`cp there.txt box:${inside}`)
    await kubectl.ok(`cp box:${inside} back.txt`)
    expect(readFileSync(join(kubectl.folder, 'back.txt'), 'utf8')).toBe(text)
  })

  it('port-forward: several connections, as much as there is, a port that nobody listens at', async () => {
    const forward = kubectl.start('port-forward pod/server :8080 :9999')
    const [, port = ''] = await forward.until(/Forwarding from 127\.0\.0\.1:(\d+) -> 8080/)
    const [, dead = ''] = await forward.until(/Forwarding from 127\.0\.0\.1:(\d+) -> 9999/)
    const answers = await Promise.all(['/a', '/b', '/c'].map(path => ask(port, path)))
    expect(answers).toEqual(['got 0 at /a', 'got 0 at /b', 'got 0 at /c'])
    expect(await ask(port, '/up', 'x'.repeat(2_000_000))).toBe('got 2000000 at /up')
    expect(await ask(port, '/big')).toHaveLength('got 0 at /big'.length + 3e6)
    await expect(ask(dead, '/')).rejects.toThrow()
    await forward.until(/forwarding \d+ -> 9999: error forwarding port 9999 to pod server: .*ECONNREFUSED/)
    forward.child.kill()
    await forward.ended
  })

  it('debug: a copy of the pod, but nothing new in it', async () => {
    expect(await kubectl.fails('debug box --image=x -- true')).toMatch(
      /ephemeral containers are disabled for this cluster .*node runs no ephemeral containers/,
    )
    await kubectl.ok('debug box --image=x --copy-to=copy --set-image=*=y -- true')
    expect(await kubectl.ok('get pod copy -o jsonpath={.spec.containers[*].image}')).toBe('y x')
    await kubectl.ok('delete pod copy --force --grace-period=0')
  })
})

/** One connection, one answer. */
function ask(port: string, path: string, body = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request(
      { host: '127.0.0.1', port, path, method: 'POST', agent: false, headers: { connection: 'close' } },
      answer => {
        let text = ''
        answer.setEncoding('utf8').on('data', piece => {
          text += piece
        })
        answer.once('end', () => resolve(text)).once('error', reject)
      },
    )
    asked.once('error', reject)
    asked.end(body)
  })
}
