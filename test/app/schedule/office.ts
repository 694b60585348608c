/**
 * Schedules and orphans at work on a real server, under an account that may do what their declarations say and nothing else, with a clock that a test sets.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addOrphans, orphanPermissions } from '../../../controller/app/orphans/controller.ts'
import { addSchedules, scheduleOperator } from '../../../controller/app/schedule/operator.ts'
import { type Access, connect } from '../../../controller/kube/access.ts'
import { defineKind } from '../../../controller/kube/kind.ts'
import { Namespace } from '../../../controller/kube/kinds.ts'
import { createManager } from '../../../controller/runtime/manager.ts'
import { type Rbac, rbacManifests, rbacOf } from '../../../controller/toolkit/index.ts'
import { type Clock, systemClock } from '../../../shared/clock.ts'
import { accountConfig } from '../../fixtures/account.ts'
import { installOwnKinds } from '../../fixtures/own-kinds.ts'

export interface Office {
  readonly access: Access
  readonly namespace: string
  /** What was written, but events: `create operations x`. */
  readonly writes: string[]
  readonly complaints: string[]
  /** Sets the clock of the process, in milliseconds since 1970. */
  setClock(now: number): void
  now(): number
  close(): Promise<void>
}

export async function openOffice(file: string, name: string): Promise<Office> {
  const access = connect({ kubeconfig: { file } })
  await installOwnKinds(access.client)
  const { metadata } = await access.client.create(Namespace, { metadata: { generateName: `${name}-` } })
  const namespace = metadata.name
  const { rules, own }: Rbac = rbacOf([scheduleOperator()])
  for (const object of rbacManifests(
    { rules: [...rules, ...orphanPermissions], own },
    { name: namespace, namespace },
  )) {
    const { apiVersion, kind } = object as { apiVersion: string; kind: string }
    const [version = '', group = ''] = apiVersion.split('/').reverse()
    const isWide = kind.startsWith('Cluster')
    await access.client.create(defineKind({ group, version, kind, namespaced: !isWide }), object as never)
  }
  const folder = await mkdtemp(join(tmpdir(), 'shipmate-office-'))
  const account = join(folder, 'kubeconfig')
  await writeFile(account, await accountConfig(access, { name: namespace, namespace }))

  let ahead = 0
  const clock: Clock = { ...systemClock, now: () => Date.now() + ahead }
  const writes: string[] = []
  const complaints: string[] = []
  const manager = createManager({
    ...{ name, clock, kubeconfig: { file: account }, namespaces: [namespace], signals: false },
    log: { level: 'warn', destination: { write: line => void complaints.push(line) } },
    interceptors: [
      next => request => {
        const { verb, resource, subresource, name } = request.target
        if (request.method !== 'GET' && resource !== 'events')
          writes.push(`${verb} ${resource}${subresource ? `/${subresource}` : ''} ${name ?? ''}`)
        return next(request)
      },
    ],
  })
  addSchedules(manager)
  addOrphans(manager)
  const started = manager.start()
  await manager.ready
  return {
    ...{ access, namespace, writes, complaints },
    setClock(now) {
      ahead = now - Date.now()
    },
    now: () => clock.now(),
    async close() {
      await manager.stop()
      await started
      await access.close()
      await rm(folder, { recursive: true })
    },
  }
}
