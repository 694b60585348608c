import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { ConfigMap, Pod, Secret } from '../../../controller/kube/kinds.ts'
import { processesWith } from '../../../devcluster/node/identity.ts'
import { isolationHere } from '../../../devcluster/node/sandbox.ts'
import { patience, startWorld, type World } from './world.ts'

const modes = [...new Set([isolationHere(), 'user', 'none'] as const)].filter(
  mode => mode !== 'user' || isolationHere() !== 'none',
)
const sh = (script: string) => ['sh', '-c', script]
/** Goes on until it is asked to end. */
const serve = 'trap "exit 0" TERM; while :; do sleep 0.05; done'

describe.each(modes)('pods, isolation %s', isolation => {
  let world: World
  beforeAll(async () => {
    world = await startWorld({ isolation, backoff: { first: 300, longest: 1000 } })
  })
  afterAll(async () => {
    expect(world.nodes.problems).toEqual([])
    await world[Symbol.asyncDispose]()
    expect(processesWith(`SHIPMATE_NODE=${world.nodes.folder}`)).toEqual([])
    expect(() => readFileSync(world.nodes.folder)).toThrow('ENOENT')
  })

  it('runs to its end, with its exit code and its log', async () => {
    await world.pod('done', {
      restartPolicy: 'Never',
      containers: [{ name: 'main', image: 'x', command: sh('echo one; echo two >&2; exit 3') }],
    })
    const { status } = await world.until('done', ({ status }) => status?.phase === 'Failed')
    expect(status?.containerStatuses?.[0]).toMatchObject({
      restartCount: 0,
      ready: false,
      state: { terminated: { exitCode: 3, reason: 'Error' } },
    })
    expect((await world.log('done')).split('\n').sort()).toEqual(['', 'one', 'two'])
    expect(status?.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({
      status: 'False',
      reason: 'PodFailed',
    })
  })

  it('shows config maps, secrets and fields as files and variables, and changes them at once', async () => {
    const { client } = world.access
    const { namespace } = world
    await client.create(ConfigMap, { metadata: { namespace, name: 'settings' }, data: { colour: 'red', size: 'L' } })
    await client.create(Secret, { metadata: { namespace, name: 'key' }, data: { key: btoa('hidden') } })
    await world.pod('config', {
      containers: [
        {
          name: 'main',
          image: 'x',
          command: sh(`cat "$0"/colour "$0"/../key/key; echo; echo $SIZE $NODE $SHOUT $1; ${serve}`),
          args: ['/etc/shipmate-test/settings', '$(SIZE)-$(NONE)'],
          env: [
            { name: 'SIZE', valueFrom: { configMapKeyRef: { name: 'settings', key: 'size' } } },
            { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
            { name: 'SHOUT', value: '$(SIZE)!' },
          ],
          volumeMounts: [
            { name: 'settings', mountPath: '/etc/shipmate-test/settings' },
            { name: 'key', mountPath: '/etc/shipmate-test/key' },
          ],
        },
      ],
      volumes: [
        { name: 'settings', configMap: { name: 'settings' } },
        { name: 'key', secret: { secretName: 'key' } },
      ],
    })
    const pod = await world.until('config', ({ status }) => status?.phase === 'Running')
    await vi.waitFor(async () => expect(await world.log('config')).toContain('L-$(NONE)'), patience)
    expect(await world.log('config')).toBe(`redhidden\nL ${namespace} L! L-$(NONE)\n`)
    await client.patch(ConfigMap, { namespace, name: 'settings' }, { merge: { data: { colour: 'blue', size: null } } })
    const volume = join(world.nodes.folder, 'pods', pod.metadata.uid, 'volumes/settings')
    await vi.waitFor(() => expect(readFileSync(join(volume, 'colour'), 'utf8')).toBe('blue'), patience)
    const place = { namespace, name: 'config', uid: pod.metadata.uid }
    const command = ['cat', '/etc/shipmate-test/settings/colour']
    const session = await world.nodes.runtime.exec(place, { container: 'main', command, stdin: false, tty: false })
    expect(await textOf(session.stdout)).toBe('blue')
    expect(await session.exit).toBe(0)
  })

  it('starts init containers and sidecars in order, and ends sidecars last', async () => {
    const share = [{ name: 'shared', mountPath: '/shared' }]
    const say = (name: string) => `echo ${name} >> "$0"/order`
    const one = (name: string, script: string) => ({
      name,
      image: 'x',
      command: sh(script),
      args: ['/shared'],
      volumeMounts: share,
    })
    await world.pod('order', {
      restartPolicy: 'Never',
      volumes: [{ name: 'shared', persistentVolumeClaim: { claimName: `order-${isolation}` } }],
      initContainers: [
        one('first', say('first')),
        {
          ...one(
            'side',
            `trap '${say('side-end')}; exit 0' TERM; ${say('side')}; sleep 0.3; touch "$0"/ready-${isolation}; while :; do sleep 0.05; done`,
          ),
          restartPolicy: 'Always',
          startupProbe: { exec: { command: ['test', '-f', `/shared/ready-${isolation}`] }, periodSeconds: 1 },
        },
        one('second', `[ -f "$0"/ready-${isolation} ] && ${say('second')}`),
      ],
      containers: [one('main', `${say('main')}; sleep 0.2; ${say('main-end')}`)],
    })
    const { status } = await world.until('order', ({ status }) => status?.phase === 'Succeeded')
    const file = join(world.nodes.folder, 'claims', world.namespace, `order-${isolation}`, 'order')
    expect(readFileSync(file, 'utf8').trim().split('\n')).toEqual([
      'first',
      'side',
      'second',
      'main',
      'main-end',
      'side-end',
    ])
    expect(status?.initContainerStatuses?.map(({ name, ready }) => [name, ready])).toEqual([
      ['first', true],
      ['side', false],
      ['second', true],
    ])
  })

  it('is ready when its probe says so, and restarted when it is no longer alive', async () => {
    await world.pod('probed', {
      containers: [
        {
          name: 'main',
          image: 'x',
          command: [
            process.execPath,
            '-e',
            `let n = 0
             require('http').createServer((q, s) => { s.statusCode = q.url === '/live' && n++ > 1 ? 500 : 200; s.end() })
               .listen(8080, process.env.HOST)
             process.on('SIGTERM', () => process.exit(0))`,
          ],
          ports: [{ name: 'http', containerPort: 8080 }],
          startupProbe: { httpGet: { path: '/started', port: 8080 }, periodSeconds: 1, failureThreshold: 60 },
          readinessProbe: { httpGet: { path: '/ready', port: 'http' } },
          livenessProbe: { httpGet: { path: '/live', port: 8080 }, periodSeconds: 1, failureThreshold: 1 },
        },
      ],
    })
    const ready = await world.until('probed', ({ status }) => status?.containerStatuses?.[0]?.ready === true)
    expect(ready.status?.podIP).toMatch(/^127\./)
    expect(ready.status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')
    const again = await world.until('probed', ({ status }) => (status?.containerStatuses?.[0]?.restartCount ?? 0) > 0)
    expect(again.status?.containerStatuses?.[0]?.lastState?.terminated).toMatchObject({
      exitCode: 0,
      reason: 'Completed',
    })
    await vi.waitFor(async () => {
      const events = await world.events('probed')
      expect(events).toContain('Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 500')
      expect(events).toContain('Killing: Container main failed liveness probe, will be restarted')
    }, patience)
  })

  it('backs off from what crashes', async () => {
    await world.pod('crashing', sh('echo $$; exit 7'))
    const pod = await world.until(
      'crashing',
      ({ status }) => status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CrashLoopBackOff',
    )
    const [container] = pod.status?.containerStatuses ?? []
    expect(container?.lastState?.terminated?.exitCode).toBe(7)
    expect(container?.state?.waiting?.message).toMatch(/^back-off \S+ restarting failed container=main pod=crashing_/)
    expect(pod.status?.phase).toBe('Running')
    expect(await world.log('crashing', 'main', { previous: true })).not.toBe('')
  })

  it('is ended by preStop, SIGTERM and its time, and its object goes after its processes', async () => {
    await world.pod('ending', {
      terminationGracePeriodSeconds: 20,
      volumes: [{ name: 'kept', persistentVolumeClaim: { claimName: `ending-${isolation}` } }],
      containers: [
        {
          name: 'main',
          image: 'x',
          command: sh('trap "echo term >>$0/said; exit 0" TERM; echo up >>$0/said; while :; do sleep 0.05; done'),
          args: ['/kept'],
          volumeMounts: [{ name: 'kept', mountPath: '/kept' }],
          lifecycle: { preStop: { exec: { command: ['sh', '-c', 'echo hook >>$0/said', '/kept'] } } },
        },
      ],
    })
    await world.until('ending', ({ status }) => status?.containerStatuses?.[0]?.ready === true)
    const file = join(world.nodes.folder, 'claims', world.namespace, `ending-${isolation}`, 'said')
    await vi.waitFor(() => expect(readFileSync(file, 'utf8')).toBe('up\n'), patience)
    await world.access.client.delete(Pod, { namespace: world.namespace, name: 'ending' })
    await world.gone('ending')
    expect(readFileSync(file, 'utf8')).toBe('up\nhook\nterm\n')
  })

  it('kills what does not heed SIGTERM when a shorter time is asked for', async () => {
    const { metadata } = await world.pod('deaf', {
      terminationGracePeriodSeconds: 600,
      containers: [
        {
          name: 'main',
          image: 'x',
          command: sh('trap "" TERM; (trap "" TERM; setsid sleep 999) & while :; do sleep 0.1; done'),
        },
      ],
    })
    await world.until('deaf', ({ status }) => status?.containerStatuses?.[0]?.ready === true)
    const id = (await world.get('deaf'))?.status?.containerStatuses?.[0]?.containerID?.replace('shipmate://', '')
    expect(processesWith(`SHIPMATE_CONTAINER=${id}`).length).toBeGreaterThan(0)
    const { client } = world.access
    await client.delete(Pod, metadata)
    await client.delete(Pod, metadata, { gracePeriodSeconds: 1 })
    await world.gone('deaf')
    expect(processesWith(`SHIPMATE_CONTAINER=${id}`)).toEqual([])
  })

  it('says what is missing', async () => {
    await world.pod('lacking', {
      containers: [{ name: 'main', image: 'x', command: ['true'], envFrom: [{ configMapRef: { name: 'later' } }] }],
      restartPolicy: 'Never',
    })
    const waiting = await world.until('lacking', ({ status }) =>
      Boolean(status?.containerStatuses?.[0]?.state?.waiting?.message),
    )
    expect(waiting.status?.containerStatuses?.[0]?.state?.waiting).toEqual({
      reason: 'CreateContainerConfigError',
      message: 'configmap "later" not found',
    })
    await world.access.client.create(ConfigMap, {
      metadata: { namespace: world.namespace, name: 'later' },
      data: { A: 'b' },
    })
    await world.until('lacking', ({ status }) => status?.phase === 'Succeeded')

    await world.pod('imageless', { containers: [{ name: 'main', image: 'nobody/knows:1' }] })
    const pod = await world.until('imageless', ({ status }) =>
      Boolean(status?.containerStatuses?.[0]?.state?.waiting?.message),
    )
    expect(pod.status?.containerStatuses?.[0]?.state?.waiting?.reason).toBe('ImagePullBackOff')

    await world.pod('commandless', {
      restartPolicy: 'Never',
      containers: [{ name: 'main', image: 'x', command: ['no-such-program'] }],
    })
    const failed = await world.until('commandless', ({ status }) => status?.phase === 'Failed')
    expect(failed.status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({
      exitCode: 128,
      reason: 'StartError',
    })
  })

  it('has a deadline', async () => {
    await world.pod('late', {
      activeDeadlineSeconds: 1,
      containers: [{ name: 'main', image: 'x', command: sh(serve) }],
    })
    const { status } = await world.until('late', ({ status }) => status?.phase === 'Failed')
    expect(status?.reason).toBe('DeadlineExceeded')
  })
})

async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  let text = ''
  for await (const piece of stream) text += piece
  return text
}
