/**
 * The agent copied into the application's own image by an init container: that image has busybox and nothing else, the actions use what it has.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { nodeEnvironment, nodeFlags, unset } from '../../../shared/launch.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { actions, endsAfterPreStop, goesOnWithoutAgent, shell } from './deaths.ts'
import {
  describeOnNode,
  images,
  longest,
  restricted,
  restrictedNamespace,
  type SidecarPod,
  type SidecarPods,
  stateDir,
} from './pod.ts'

const uid = 54321

const lifecycle: LifecycleSpec = {
  preStop: 'stop',
  actions: [{ name: 'look', ...shell('ls / /bin; which node || echo "{\\"result\\":\\"no Node\\"}"') }, ...actions],
}

const [supervise, node] = [
  ['/shipmate/shipmate-init', 'supervise', '--'],
  ['/shipmate/ld.so', '--library-path', '/shipmate/lib', '/shipmate/node', ...nodeFlags],
]
const command = [...supervise, ...node, '/shipmate/agent.cjs', 'sidecar']
const env = { ...nodeEnvironment, ...unset }

describeOnNode("the agent in the application's own image", kubeconfig => {
  let pods: SidecarPods
  let pod: SidecarPod
  beforeAll(async () => {
    pods = await restrictedNamespace(kubeconfig, lifecycle)
    const volume = { name: 'shipmate', mountPath: '/shipmate' }
    pod = await pods.start('app', {
      appImage: images.busybox,
      volumes: [{ name: 'shipmate', emptyDir: {} }],
      before: [
        {
          name: 'install',
          image: images.sidecar,
          imagePullPolicy: 'Never',
          command: ['shipmate', 'install-agent', '/shipmate'],
          securityContext: restricted,
          volumeMounts: [volume],
        },
      ],
      sidecar: {
        image: images.busybox,
        command,
        env: Object.entries(env).map(([name, value]) => ({ name, value })),
        securityContext: { ...restricted, runAsUser: uid },
        volumeMounts: [{ ...volume, readOnly: true }],
        lifecycle: {
          preStop: { exec: { command: ['/shipmate/shipmate-init', 'prestop', '--state-dir', stateDir] } },
        },
      },
    })
  }, longest)
  afterAll(() => pods?.[Symbol.asyncDispose]())

  it('is started as the installation says', async () => {
    expect(JSON.parse(await pod.exec('sidecar', ['cat', '/shipmate/command.json']))).toEqual({ command, env })
    expect(await pod.exec('sidecar', ['id', '-u'])).toBe(`${uid}\n`)
  })

  it("runs an action with the application's tools, and no others", async () => {
    await pod.ask('PUT', '/v1/runs/look', { action: 'look' })
    expect(await pod.ended('look')).toMatchObject({ phase: 'Succeeded', result: 'no Node' })
  })

  it('goes on with a run when it is killed, and the run ends once', () => goesOnWithoutAgent(pod))

  it('holds the application back from its end until the preStop action is done', () => endsAfterPreStop(pod))
})
