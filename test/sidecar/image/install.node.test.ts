/**
 * The agent copied into the application's own image by an init container: that image has busybox and nothing else, the actions use what it has.
 */
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { nodeEnvironment, nodeFlags, unset } from '../../../sidecar/install/launch.ts'
import {
  images,
  noImages,
  restricted,
  restrictedNamespace,
  type SidecarPod,
  type SidecarPods,
  stateDir,
} from './pod.ts'

const kubeconfig = inject('kubeconfig')
const skipped = noImages ? ` (skipped: ${noImages})` : ''
const longest = 180_000
const uid = 54321

const shell = (script: string) => ({ exec: { command: ['sh', '-c', script] } })
const lifecycle: LifecycleSpec = {
  preStop: 'stop',
  actions: [
    { name: 'look', ...shell('ls / /bin; which node || echo "{\\"result\\":\\"no Node\\"}"') },
    { name: 'wait', ...shell('until [ -e /work/go ]; do sleep 0.05; done; echo once >>/work/effects') },
    { name: 'stop', ...shell('echo begun >/work/stop; sleep 3; echo ended >>/work/stop') },
  ],
}

const [supervise, node] = [
  ['/shipmate/shipmate-init', 'supervise', '--'],
  ['/shipmate/ld.so', '--library-path', '/shipmate/lib', '/shipmate/node', ...nodeFlags],
]
const command = [...supervise, ...node, '/shipmate/agent.cjs', 'sidecar']
const env = { ...nodeEnvironment, ...unset }

describe.skipIf(!kubeconfig || noImages)(
  `the agent in the application's own image${skipped}`,
  { timeout: longest },
  () => {
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

    it('goes on with a run when it is killed, and the run ends once', async () => {
      const { bootId } = await pod.state()
      await pod.begin('wait', 'wait')
      await pod.exec('sidecar', ['sh', '-c', 'kill -9 $(cut -d" " -f1 /proc/1/task/1/children)'])
      await vi.waitUntil(async () => (await pod.state()).bootId !== bootId, { timeout: 30_000 })
      expect(await pod.run('wait')).toMatchObject({ phase: 'Running' })

      await pod.exec('app', ['touch', '/work/go'])
      expect(await pod.ended('wait')).toMatchObject({ phase: 'Succeeded', exitCode: 0 })
      expect(await pod.exec('app', ['cat', '/work/effects'])).toBe('once\n')
      expect(await pod.restarts()).toBe(0)
    })

    it('holds the application back from its end until the preStop action is done', async () => {
      const app = pod.printed('app')
      await pod.delete()
      expect(await app).toEqual(['up', 'begun', 'ended', 'asked to end'])
    })
  },
)
