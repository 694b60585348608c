/**
 * Objects as the server has them, for tests of what is decided about them.
 */

import type { App } from '../../../controller/app/view.ts'
import type { Workload } from '../../../controller/app/workload/gather.ts'
import type { LivePod } from '../../../controller/app/workload/pod-view.ts'
import { StatefulSet } from '../../../controller/kube/kinds.ts'

export const namespace = 'shop'

export function anApp(spec: object = {}, metadata: object = {}): App {
  const given = { lifecycle: 'postgres', workload: { kind: 'StatefulSet', apiVersion: 'apps/v1', name: 'db' } }
  return {
    apiVersion: 'shipmate.dev/v1alpha1',
    kind: 'StatefulApp',
    metadata: { name: 'orders', namespace, uid: 'app-1', resourceVersion: '1', creationTimestamp: '', ...metadata },
    spec: { ...given, deletion: {}, paused: false, ...spec },
  } as unknown as App
}

export function templateApp(template: object = {}, metadata: object = {}): App {
  const containers = [{ name: 'db', image: 'db', ports: [{ name: 'sql', containerPort: 5432 }] }]
  const spec = { replicas: 3, template: { spec: { containers } } }
  return anApp({ workload: undefined, template: { spec, ...template } }, metadata)
}

export function aWorkload(more: Partial<Workload> = {}): Workload {
  return {
    ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', namespace, uid: 'set-1', resourceVersion: '7' },
    of: StatefulSet,
    selector: { matchLabels: { app: 'db' } },
    replicas: 3,
    annotatedReplicas: undefined,
    keptReplicas: undefined,
    claimedBy: undefined,
    claimTemplates: ['data'],
    ...{ isScalable: true, isPlain: true, isRollingOut: false, isOutdated: false },
    ...{ hasStableNames: true, isBeingDeleted: false },
    ...more,
  }
}

export function aPod(name: string, more: { metadata?: object; spec?: object; status?: object } = {}): LivePod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, uid: `uid-${name}`, resourceVersion: '1', creationTimestamp: '', ...more.metadata },
    spec: { containers: [{ name: 'db' }], nodeName: 'n1', restartPolicy: 'Always', ...more.spec },
    status: { phase: 'Running', ...more.status },
  } as unknown as LivePod
}
