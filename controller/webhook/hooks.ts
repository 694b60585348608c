/**
 * Shipmate's own webhooks: the sidecar is added to pods that ask for it; what cannot be carried out, or what the writer could not have done, is refused where it is written.
 *
 * Guarantees: nobody is asked about a write that leaves the spec alone, so finalizers, labels, status and deletion always pass; a refusal is decided from a live read,
 * never from a cache that is behind; a controller that is down holds no pod.
 */
import { group, version } from '../../shared/kinds/group.ts'
import { Lifecycle, Operation, OperationSchedule, StatefulApp } from '../app/kinds.ts'
import { lifecycleView } from '../app/lifecycle-view.ts'
import type { App, LifecycleView, Op } from '../app/view.ts'
import { lifecycleLabel } from '../app/workload/marks.ts'
import type { Client } from '../kube/client.ts'
import { createDiscovery } from '../kube/discovery.ts'
import type { Live, Snapshot } from '../kube/kind.ts'
import {
  type Admission,
  type AdmissionRequest,
  type Hook,
  type HookRule,
  mutating,
  validating,
} from '../runtime/index.ts'
import { inject, lifecycleOf, type Settings } from './inject/inject.ts'
import type { PodTemplate } from './inject/template.ts'
import { lacking } from './permitted.ts'
import { reviewApp } from './review/app.ts'
import { reviewLifecycle } from './review/lifecycle.ts'
import { type AppKnown, reviewOperation, reviewSchedule } from './review/operation.ts'
import { type Right, rightsForApp, rightsForOperation } from './review/rights.ts'
import { refused, taken, type Verdict } from './review/verdict.ts'
import { signed } from './settle.ts'

export interface HookOptions {
  /** Reads as they are now. */
  readonly client: Client
  readonly settings: Settings
  /** The controller's own user: what it writes was decided already. Default: everybody is asked about. */
  readonly user?: string | undefined
}

const rule = (resources: readonly string[], operations: HookRule['operations'] = ['CREATE', 'UPDATE']): HookRule[] => [
  { operations, apiGroups: [group], apiVersions: [version], resources, scope: 'Namespaced' },
]

/** In CEL: a new object, or another spec. */
const asksAnew = { name: 'asks-anew', expression: 'oldObject == null || object.spec != oldObject.spec' }
const saysAnew = {
  name: 'says-anew',
  expression:
    'has(object.spec.settle) && (oldObject == null || !has(oldObject.spec.settle) || object.spec.settle != oldObject.spec.settle)',
}

export function shipmateHooks({ client, settings, user }: HookOptions): Hook[] {
  const discovery = createDiscovery(client)
  const others =
    user === undefined ? [] : [{ name: 'not-its-own', expression: `request.userInfo.username != '${user}'` }]
  const rightly = (rights: readonly Right[], { user, namespace = '', signal }: AdmissionRequest) =>
    lacking(rights, { client, discovery, user, namespace, signal })
  const forbidden = (problems: readonly string[]): Admission => ({ reason: 'Forbidden', ...told(refused(...problems)) })

  async function known(app: string, namespace: string, signal: AbortSignal): Promise<AppKnown> {
    const found = await client.find(StatefulApp, { name: app, namespace }, { signal })
    if (!found)
      return { app: undefined, apps: await namesOf(client, StatefulApp, namespace, signal), lifecycle: undefined }
    return {
      app: found.spec,
      apps: [app],
      lifecycle: await lifecycleFor(client, found.spec.lifecycle, namespace, signal),
    }
  }

  const reviews: Record<string, (request: AdmissionRequest) => Promise<Verdict>> = {
    Lifecycle: async ({ object, old }) => reviewLifecycle(specOf(object), specOf(old)),
    async StatefulApp({ object, old, namespace = '', signal }) {
      const app = object as unknown as App
      const lifecycle = await lifecycleFor(client, app.spec.lifecycle, namespace, signal)
      const lifecycles = lifecycle ? [] : await namesOf(client, Lifecycle, namespace, signal)
      return reviewApp({ app, old: old as unknown as App | undefined, lifecycle, lifecycles })
    },
    async Operation({ object, old, namespace = '', signal }) {
      const { spec } = object as unknown as Op
      // What it asks cannot be changed.
      if (old) return taken
      return reviewOperation(spec, await known(spec.app, namespace, signal))
    },
    async OperationSchedule({ object, namespace = '', signal }) {
      const { spec } = object as unknown as Snapshot<OperationSchedule>
      return reviewSchedule(spec, await known(spec.template.app, namespace, signal))
    },
  }

  return [
    mutating({
      name: 'inject.shipmate.dev',
      path: '/inject',
      rules: [
        { operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], scope: 'Namespaced' },
      ],
      objectSelector: { matchExpressions: [{ key: lifecycleLabel, operator: 'Exists' }] },
      failurePolicy: 'Ignore',
      reinvocationPolicy: 'IfNeeded',
      async handle({ object, namespace = '', signal }) {
        const pod = object as unknown as PodTemplate
        const name = lifecycleOf(pod)
        const lifecycle = name === undefined ? undefined : await client.find(Lifecycle, { name, namespace }, { signal })
        const injection = inject(pod, { lifecycle: lifecycle?.spec as never }, settings)
        switch (injection.outcome) {
          case 'refused':
            return { problems: injection.problems.map(message => ({ message })) }
          case 'left':
            return undefined
          default:
            return { object: injection.pod as never, warnings: injection.warnings }
        }
      },
    }),
    mutating({
      name: 'settle.shipmate.dev',
      path: '/settle',
      rules: rule(['operations']),
      matchConditions: [saysAnew],
      async handle(request) {
        const op = request.object as unknown as Op
        const old = request.old as unknown as Op | undefined
        const missing = await rightly(rightsForOperation(op, old), request)
        if (missing.length > 0) return forbidden(missing)
        const settle = signed(op.spec.settle ?? [], old?.spec.settle, request.user.name)
        return { object: { ...op, spec: { ...op.spec, settle } } as never }
      },
    }),
    validating({
      name: 'validate.shipmate.dev',
      path: '/validate',
      rules: rule([Lifecycle, StatefulApp, Operation, OperationSchedule].map(({ plural }) => plural)),
      matchConditions: [asksAnew, ...others],
      async handle(request) {
        if (request.kind.kind === StatefulApp.kind) {
          const old = request.old as unknown as App | undefined
          const missing = await rightly(rightsForApp(request.object as unknown as App, old), request)
          if (missing.length > 0) return forbidden(missing)
        }
        const review = reviews[request.kind.kind]
        return review && told(await review(request))
      },
    }),
  ]
}

function told({ problems, warnings }: Verdict): Admission {
  return { problems: problems.map(message => ({ message })), warnings }
}

const specOf = (object: Live | undefined): unknown => (object as { spec?: unknown } | undefined)?.spec

async function lifecycleFor(
  client: Client,
  name: string,
  namespace: string,
  signal: AbortSignal,
): Promise<LifecycleView | undefined> {
  const lifecycle = await client.find(Lifecycle, { name, namespace }, { signal })
  return lifecycle && lifecycleView(lifecycle as Snapshot<Lifecycle>)
}

async function namesOf(
  client: Client,
  kind: typeof Lifecycle | typeof StatefulApp,
  namespace: string,
  signal: AbortSignal,
): Promise<string[]> {
  const all = await client.list(kind as typeof Lifecycle, { namespace, signal })
  return all.map(({ metadata }) => metadata.name)
}
