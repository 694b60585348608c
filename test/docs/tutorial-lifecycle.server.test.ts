/**
 * docs/tutorial-lifecycle.md, done as it says, on the rig: its files are written as they stand there, its commands run as they stand there, under the rules that they
 * generate. What the test adds is a container runtime's part: it runs the page's notes.mjs where a pod is.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { StatefulApp } from '../../controller/app/kinds.ts'
import { type Access, connect } from '../../controller/kube/access.ts'
import { defineKind, type Kind } from '../../controller/kube/kind.ts'
import { ConfigMap, StatefulSet } from '../../controller/kube/kinds.ts'
import type { AppView, Condition } from '../../controller/toolkit/index.ts'
import { accountConfig } from '../fixtures/account.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { type Rig, startRig } from '../fixtures/app/rig.ts'
import { kubectlMissing, kubectlPath } from '../fixtures/kubectl.ts'
import { skipFile } from '../fixtures/skip-file.ts'

const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)
const ref = { name: 'notes', namespace: 'default' }
const Database = defineKind<{ spec: object; status?: { app?: AppView; conditions?: Condition[] } }>({
  group: 'tutorial.example.com',
  version: 'v1',
  kind: 'Database',
})

interface Page {
  readonly code: readonly string[]
  readonly program: string
  readonly yaml: readonly string[]
  /** The lines of each block of commands. */
  readonly shell: readonly string[][]
  /** The commands of the table, in its order. */
  readonly table: readonly string[]
}

async function readPage(): Promise<Page> {
  const text = await readFile(join(root, 'docs/tutorial-lifecycle.md'), 'utf8')
  const blocks = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
  const of = (language: string) => blocks.flatMap(([, one, block = '']) => (one === language ? [block] : []))
  return {
    code: of('ts'),
    program: of('js')[0] ?? '',
    yaml: of('yaml'),
    shell: of('sh').map(block => block.trim().split('\n')),
    table: [...text.matchAll(/^\| `(.+?)` \|/gm)].map(([, command = '']) => command),
  }
}

skipFile(kubectlMissing)

describe.skipIf(rigMissing)('the tutorial of lifecycles', () => {
  let rig: Rig
  let access: Access
  let page: Page
  let folder: string
  let database: ChildProcess | undefined
  const output = { operator: '', controller: '', database: '' }
  const running: ChildProcess[] = []

  const environment = () => {
    const path = [dirname(process.execPath), dirname(kubectlPath), process.env.PATH].join(':')
    // HOME, since kubectl keeps what it discovered there.
    return { ...process.env, PATH: path, KUBECONFIG: rig.server.kubeconfig, HOME: folder }
  }
  const shell = async (command: string, cwd = folder) => {
    const { stdout } = await run('sh', ['-c', command], { cwd, env: environment() })
    return stdout
  }
  function begin(who: keyof typeof output, args: string[], env: NodeJS.ProcessEnv = environment()): ChildProcess {
    const child = spawn(process.execPath, args, { cwd: folder, env })
    for (const stream of [child.stdout, child.stderr]) stream.on('data', piece => (output[who] += piece))
    running.push(child)
    return child
  }
  async function stop(child: ChildProcess | undefined): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }
  /** As a kubelet would: while there is a pod, there is its program. */
  async function serve(): Promise<void> {
    await rig.until('a pod', () => rig.pods(ref.namespace).length === 1)
    database = begin('database', [join(folder, 'notes.mjs')])
  }
  async function unserve(): Promise<void> {
    await rig.until('no pod', () => rig.pods(ref.namespace).length === 0)
    await stop(database)
  }
  const startOperator = () =>
    begin('operator', [join(folder, 'main.ts')], { ...environment(), KUBECONFIG: join(folder, 'kubeconfig') })

  const live = () => access.client.get(Database, ref)
  async function until(expected: string, holds: (state: string, app: AppView, isAsWished: boolean) => unknown) {
    let last: unknown
    try {
      return await rig.until(expected, async () => {
        const { status, metadata } = await live()
        last = status
        const condition = status?.conditions?.find(({ type }) => type === 'AppState')
        const isNew = condition?.observedGeneration === metadata.generation
        const isAsWished = isNew && condition?.status === 'True'
        return condition && status?.app && holds(condition.reason, status.app, isAsWished) ? status : undefined
      })
    } catch (error) {
      const said = Object.entries(output).map(([who, text]) => `${who}: ${text.split('\n').slice(-8).join('\n')}`)
      throw new Error([(error as Error).message, JSON.stringify(last, null, 1), ...said].join('\n'))
    }
  }
  const isIn = (wanted: string) =>
    until(`${wanted}, as wished`, (state, _, isAsWished) => state === wanted && isAsWished)
  const backups = () => output.database.match(/^backup .*$/gm) ?? []

  beforeAll(async () => {
    page = await readPage()
    await mkdir(join(root, '.cache'), { recursive: true })
    // Inside of the package: so `shipmate` is this one, as built.
    folder = await mkdtemp(join(root, '.cache/tutorial-'))
    const [lifecycle = '', ...rest] = page.code
    const [main, manifests] = [rest.at(-2) ?? '', rest.at(-1) ?? '']
    const files = {
      'notes.mjs': page.program,
      'lifecycle.ts': lifecycle,
      'database.ts': rest.slice(0, -2).join('\n'),
      'statefulset.yaml': page.yaml[0] ?? '',
      'sample.yaml': page.yaml[1] ?? '',
      'manifests.ts': manifests,
      // Port 8081 may be in use where tests run.
      'main.ts': main.replace('run(operator)', 'run(operator, { health: { port: 0 }, metrics: { port: 0 } })'),
    }
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
    const { stdout } = await run(process.execPath, [join(folder, 'manifests.ts')])
    rig = await startRig({
      async prepare(client, { kubeconfig }) {
        // The kinds first, so that the garbage collector knows them from its start.
        await writeFile(join(folder, 'manifests.yaml'), stdout)
        const env = { ...process.env, KUBECONFIG: kubeconfig, HOME: folder }
        const kinds = ['-f', join(root, 'deploy/crds'), '-f', join(folder, 'manifests.yaml')]
        await run(kubectlPath, ['apply', '--validate=strict', ...kinds], { env })
        await run(kubectlPath, ['wait', '--for=condition=Established', '--timeout=30s', 'crd', '--all'], { env })
        await client.list(Database)
      },
    })
    access = connect({ kubeconfig: { file: rig.server.kubeconfig } })
  }, 120_000)
  afterAll(async () => {
    for (const child of running) await stop(child)
    await rig?.stop()
    await access?.close()
    await rm(folder, { recursive: true, force: true })
  }, 60_000)

  it('goes as the page says', { timeout: 240_000 }, async () => {
    const [[crds = '', namespace = '', controller = ''] = [], [manifests = '', main = ''] = []] = page.shell
    expect([controller, main]).toEqual(['npx shipmate controller', 'node main.ts'])
    await shell(crds, root)
    await shell(namespace)
    begin('controller', [join(root, 'bin/shipmate.cjs'), 'controller', '--port', '0'])
    await shell(manifests)
    await writeFile(join(folder, 'kubeconfig'), await accountConfig(access, { name: 'database', namespace: 'default' }))
    let operator = startOperator()

    await shell('kubectl apply --validate=strict -f sample.yaml')
    await until('Start', state => state === 'Start')
    await serve()
    await isIn('Running')
    expect(await shell('kubectl get db')).toMatch(/^NAME +DESIRED +STATE +AGE\nnotes +Running +Running +\d+s\n$/)

    const [monday = '', tuesday = '', sleeping = '', end = '', again = '', path = '', goodbye = '', ...more] =
      page.table
    expect(more).toEqual([])
    await shell(monday)
    await until('Servicing', state => state === 'Servicing')
    await isIn('Running')
    expect(backups()).toEqual(['backup monday'])

    await shell(tuesday)
    await rig.until('another backup', () => backups().length > 1)
    await isIn('Running')
    expect(backups()).toEqual(['backup monday', 'backup tuesday'])

    await expect(shell(sleeping)).rejects.toThrow(
      'supported values: "Start", "Running", "Servicing", "Stopping", "End"',
    )

    await shell(end)
    await unserve()
    await isIn('End')
    expect(output.database).toMatch(/stopped\n$/)
    expect((await access.client.get(StatefulSet, ref)).spec?.replicas).toBe(0)

    await shell(again)
    await serve()
    await isIn('Running')
    expect((await access.client.get(StatefulSet, ref)).spec?.replicas).toBe(1)
    expect(await shell(path)).toMatch(/^>Start>.*Running.*Servicing.*>Stopping>.*End>.*Running$/)

    const versions = () =>
      Promise.all(
        ([Database, StatefulApp, ConfigMap, StatefulSet] as Kind[]).map(
          async kind => (await access.client.get(kind, ref)).metadata.resourceVersion,
        ),
      )
    await stop(operator)
    const before = await versions()
    await access.client.delete(ConfigMap, ref)
    operator = startOperator()
    // What it would write, it has when this is mended.
    await rig.until('the program is put back', () => access.client.find(ConfigMap, ref))
    const [db, app, , set] = await versions()
    expect([db, app, set], 'what a restart writes').toEqual([before[0], before[1], before[3]])
    expect(backups()).toHaveLength(2)

    await shell(`${goodbye} --timeout=60s`)
    expect(output.database.match(/^stopped$/gm)).toHaveLength(2)
    expect(await access.client.find(StatefulApp, ref)).toBeUndefined()
    expect(output.operator).not.toMatch(/forbidden/i)
    expect(output.operator).not.toContain('"level":"error"')
  })
})
