/**
 * The whole API server: requests, with access rules, admission and definitions around them.
 */
import { type Clock, systemClock, timeOf } from '../../shared/clock.ts'
import { bootstrapRoles } from './access/bootstrap.ts'
import { escalation } from './access/escalation.ts'
import { mayDo, type RoleSource } from './access/rbac.ts'
import { type ReviewSource, review } from './access/reviews.ts'
import type { Locate } from './admission/call.ts'
import type { ConversionSource } from './admission/conversion.ts'
import { allotPorts, checkGrowth, complete, type PluginSource, tolerateNodes } from './admission/plugins.ts'
import type { WebhookSource } from './admission/webhooks.ts'
import { keepDefinitions } from './definitions/definitions.ts'
import { locator } from './locate.ts'
import { parseBody } from './requests/decode.ts'
import { admin } from './send.ts'
import { type Api, type ApiOptions, createApi } from './server.ts'
import type { Store } from './store/store.ts'
import type { ApiRequest, ApiResponse, Asked, Obj } from './types.ts'

export interface KubernetesOptions extends Pick<ApiOptions, 'file' | 'history' | 'clock' | 'onError'> {
  /** The first two numbers of services' addresses. Default `127.96`: on Linux a process can listen there. */
  readonly serviceRange?: string | undefined
  /** Whether a pod needs its service account, and gets its token. Default true; without controllers nobody makes the accounts. */
  readonly serviceAccounts?: boolean | undefined
}

const rbac = 'rbac.authorization.k8s.io'
const definitions = 'apiextensions.k8s.io/customresourcedefinitions'

export function createKubernetes(options: KubernetesOptions = {}): Api {
  const { clock = systemClock } = options
  const api = createApi({
    ...options,
    authorize: async ({ resource = '', ...rest }, user) => mayDo(roles, user, { ...rest, resource }),
    mutate: (object, old, asked) => mutate(object, old, asked),
    admit: (object, old, asked) => admit(object, old, asked),
    convert: async (objects, type, version) => {
      const { converted } = await import('./admission/conversion.ts')
      return converted(conversions, objects, type, version)
    },
    routes: [reviewed],
  })
  const { store } = api
  const roles = roleSource(store)
  const locate: Locate = locator(store)
  const reviews: ReviewSource = { roles, userOf: token => api.tokens.check(token, clock.now()) }
  const plugins: PluginSource = {
    get: (resource, namespace, name) => store.get(resource, namespace, name),
    all: resource => store.page(resource).items,
    serviceRange: options.serviceRange ?? '127.96',
    hasAccounts: options.serviceAccounts ?? true,
  }
  const conversions: ConversionSource = {
    definition: uid => store.page(definitions).items.find(({ metadata }) => metadata.uid === uid),
    locate,
  }
  const webhooks: WebhookSource = {
    configurations: resource => store.page(`admissionregistration.k8s.io/${resource}`).items,
    namespaceLabels: name => store.get('/namespaces', undefined, name)?.metadata.labels,
    convert: async (object, type, version) => {
      const [made] = (await api.hooks.convert?.([object], type, version)) ?? [object]
      return made as Obj
    },
    locate,
    warn: ({ request }, text) => request.warn?.(text),
  }

  async function mutate(object: Obj, old: Obj | undefined, asked: Asked): Promise<Obj> {
    const { type, subresource } = asked
    let next = object
    if (!old && type.group === '' && !subresource && completed.has(type.resource)) {
      next = structuredClone(object)
      complete(plugins, `/${type.resource}`, next, asked.request.query.has('dryRun'))
    }
    if (old && type.group === '' && !subresource && (type.resource === 'pods' || type.resource === 'services')) {
      next = structuredClone(object)
      if (type.resource === 'pods') tolerateNodes(next)
      else allotPorts(plugins, next, old)
    }
    if (webhooks.configurations('mutatingwebhookconfigurations').length === 0) return next
    const { mutateByWebhooks } = await import('./admission/webhooks.ts')
    return mutateByWebhooks(webhooks, next, old, asked)
  }

  async function admit(object: Obj | undefined, old: Obj | undefined, asked: Asked): Promise<void> {
    const { type, request, subresource } = asked
    if (object && old && type.group === '' && type.resource === 'persistentvolumeclaims' && !subresource)
      checkGrowth(plugins, object, old)
    if (object && type.group === rbac) {
      const refused = escalation(roles, request.user, type.resource, object, old)
      if (refused) throw refused
    }
    if (webhooks.configurations('validatingwebhookconfigurations').length === 0) return
    const { admitByWebhooks } = await import('./admission/webhooks.ts')
    await admitByWebhooks(webhooks, object, old, asked)
  }

  async function reviewed(request: ApiRequest): Promise<ApiResponse | undefined> {
    const [, resource] = reviewPath.exec(request.path) ?? []
    if (!resource || request.method !== 'POST') return undefined
    const object = (await parseBody(request, resource)).value as Obj
    const answer = review(reviews, resource, object, request.user)
    if (!answer) return undefined
    return { status: 201, headers: { 'content-type': 'application/json' }, body: JSON.stringify(answer) }
  }

  makeRoles(store, clock)
  const stop = keepDefinitions({ store, resources: api.resources, clock, remove: path => removed(api, path) })
  const close = async () => {
    stop()
    await api.close()
  }
  return { ...api, close, [Symbol.asyncDispose]: close }
}

/** Resources of the core group that the server adds something to. */
const completed = new Set(['pods', 'services', 'persistentvolumeclaims'])

const reviewPath = /^\/apis\/(?:authorization|authentication)\.k8s\.io\/v1\/(?:namespaces\/[^/]+\/)?([a-z]+reviews)$/

function roleSource(store: Store): RoleSource {
  return {
    get: (resource, name, namespace) => store.get(`${rbac}/${resource}`, namespace, name),
    list: (resource, namespace) => store.page(`${rbac}/${resource}`, { namespace }).items,
  }
}

/** Those that are there already, from an earlier start, stay as they are. */
function makeRoles(store: Store, clock: Clock): void {
  for (const role of bootstrapRoles() as Obj[]) {
    const shelf = `${rbac}/${role.kind === 'ClusterRole' ? 'clusterroles' : 'clusterrolebindings'}`
    if (store.get(shelf, undefined, role.metadata.name)) continue
    const metadata = { ...role.metadata, uid: crypto.randomUUID(), creationTimestamp: timeOf(clock.now()) }
    store.write(shelf, { ...role, metadata }, undefined)
  }
}

async function removed(api: Api, path: string): Promise<void> {
  await api.handle({
    method: 'DELETE',
    path,
    query: new URLSearchParams(),
    headers: {},
    body: new Uint8Array(),
    user: admin,
    signal: new AbortController().signal,
  })
}
