/**
 * Mutating and validating webhooks: each that matches is asked, in the order of their names. One that cannot be reached fails the write or is passed over, as its
 * failure policy says.
 */
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { jsonPatch } from '../patch/json.ts'
import { ApiError, internal } from '../problems.ts'
import type { Asked, Obj, ResourceType } from '../types.ts'
import { call, type Locate } from './call.ts'
import { hold } from './conditions.ts'
import { isSelected, operationOf, type Webhook, wantedVersion } from './match.ts'

export interface WebhookSource {
  configurations(resource: 'mutatingwebhookconfigurations' | 'validatingwebhookconfigurations'): readonly Obj[]
  namespaceLabels(name: string): Record<string, string> | undefined
  /** The object in another version. */
  convert(object: Obj, type: ResourceType, version: string): Promise<Obj>
  readonly locate: Locate
  /** A sentence for the caller, as a Warning header. */
  warn(asked: Asked, text: string): void
}

interface Review {
  uid?: string
  allowed?: boolean
  status?: { code?: number; message?: string; reason?: string; details?: object }
  patch?: string
  patchType?: string
  warnings?: string[]
}

/** The object as the webhooks make it. Those that ask for it are called again when another has changed it after them. */
export async function mutateByWebhooks(
  source: WebhookSource,
  object: Obj,
  old: Obj | undefined,
  asked: Asked,
): Promise<Obj> {
  const hooks = matching(source, 'mutatingwebhookconfigurations', object, old, asked)
  let current = object
  const seen = new Map<Webhook, Obj>()
  for (const hook of hooks) {
    current = await mutated(source, hook, current, old, asked)
    seen.set(hook, current)
  }
  for (const hook of hooks) {
    const isAgain = hook.reinvocationPolicy === 'IfNeeded' && !isDeepStrictEqual(seen.get(hook), current)
    if (isAgain) current = await mutated(source, hook, current, old, asked)
  }
  return current
}

export async function admitByWebhooks(
  source: WebhookSource,
  object: Obj | undefined,
  old: Obj | undefined,
  asked: Asked,
): Promise<void> {
  const hooks = matching(source, 'validatingwebhookconfigurations', object, old, asked)
  // All are asked at once; the first refusal is told, in the order of their names.
  const verdicts = await Promise.allSettled(hooks.map(hook => ask(source, hook, object, old, asked)))
  for (const verdict of verdicts) if (verdict.status === 'rejected') throw verdict.reason
}

function matching(
  source: WebhookSource,
  resource: Parameters<WebhookSource['configurations']>[0],
  object: Obj | undefined,
  old: Obj | undefined,
  asked: Asked,
): Webhook[] {
  // Otherwise a wrong one could never be taken away.
  if (asked.type.group === 'admissionregistration.k8s.io') return []
  const operation = operationOf(asked, old, object)
  if (!operation) return []
  const labels = namespaceLabels(source, object ?? old, asked)
  return source
    .configurations(resource)
    .flatMap(({ webhooks = [] }) => webhooks as Webhook[])
    .filter(hook => wantedVersion(hook, operation, asked) && isSelected(hook, labels, object, old))
}

function namespaceLabels(
  source: WebhookSource,
  object: Obj | undefined,
  { type, namespace }: Asked,
): Record<string, string> | undefined {
  if (type.group === '' && type.resource === 'namespaces') return object?.metadata.labels ?? {}
  return type.namespaced ? (source.namespaceLabels(namespace ?? '') ?? {}) : undefined
}

async function mutated(
  source: WebhookSource,
  hook: Webhook,
  object: Obj,
  old: Obj | undefined,
  asked: Asked,
): Promise<Obj> {
  const answer = await ask(source, hook, object, old, asked)
  if (!answer?.patch) return object
  const version = versionFor(hook, object, old, asked)
  const shown = await source.convert(object, asked.type, version)
  try {
    const patched = jsonPatch(shown, JSON.parse(Buffer.from(answer.patch, 'base64').toString()))
    return await source.convert(patched, asked.type, object.apiVersion.split('/').at(-1) ?? version)
  } catch (error) {
    throw internal(`admission webhook "${hook.name}": cannot apply its patch: ${(error as Error).message}`)
  }
}

function versionFor(hook: Webhook, object: Obj | undefined, old: Obj | undefined, asked: Asked): string {
  const operation = operationOf(asked, old, object)
  return (operation && wantedVersion(hook, operation, asked)) ?? asked.version.version
}

/** Undefined where it could not be asked and that is no matter. */
async function ask(
  source: WebhookSource,
  hook: Webhook,
  object: Obj | undefined,
  old: Obj | undefined,
  asked: Asked,
): Promise<Review | undefined> {
  const version = versionFor(hook, object, old, asked)
  const uid = randomUUID()
  let answer: Review
  try {
    const body = await reviewOf(source, uid, version, object, old, asked)
    const { object: shown, oldObject, ...request } = body.request
    if (hook.matchConditions?.length && !hold(hook.matchConditions, { object: shown, oldObject, request }))
      return undefined
    const timeout = (hook.timeoutSeconds ?? 10) * 1000
    const reply = (await call(
      { config: hook.clientConfig, body, timeout, signal: asked.request.signal },
      source.locate,
    )) as { response?: Review }
    if (!reply.response || reply.response.uid !== uid)
      throw new Error('expected response.uid to be the one of the request')
    answer = reply.response
  } catch (error) {
    if (hook.failurePolicy === 'Ignore') return undefined
    throw internal(`failed calling webhook "${hook.name}": failed to call webhook: ${(error as Error).message}`)
  }
  for (const text of answer.warnings ?? []) source.warn(asked, text)
  if (answer.allowed) return answer
  throw refused(hook, answer)
}

function refused({ name }: Webhook, { status = {} }: Review): ApiError {
  const { code = 400, message, reason } = status
  const why = message ? `: ${message}` : reason ? `: ${reason}` : ' without explanation'
  const details = status.details ? { ...status.details } : undefined
  const known = reason ?? (code === 403 ? 'Forbidden' : code === 400 ? 'BadRequest' : '')
  return new ApiError(code, known, `admission webhook "${name}" denied the request${why}`, details)
}

async function reviewOf(
  source: WebhookSource,
  uid: string,
  version: string,
  object: Obj | undefined,
  old: Obj | undefined,
  asked: Asked,
) {
  const { type, subresource, request } = asked
  const shown = (one: Obj | undefined) => (one ? source.convert(one, type, version) : null)
  const { name: username, uid: userUid, groups, extra } = request.user
  const kind = { group: type.group, version, kind: type.kind }
  const resource = { group: type.group, version, resource: type.resource }
  const requested = asked.version.version
  return {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid,
      kind,
      resource,
      ...(subresource ? { subResource: subresource } : {}),
      requestKind: { ...kind, version: requested },
      requestResource: { ...resource, version: requested },
      ...(subresource ? { requestSubResource: subresource } : {}),
      name: asked.name ?? object?.metadata.name ?? '',
      ...(asked.namespace ? { namespace: asked.namespace } : {}),
      operation: operationOf(asked, old, object),
      userInfo: { username, ...(userUid ? { uid: userUid } : {}), groups, ...(extra ? { extra } : {}) },
      object: await shown(object),
      oldObject: await shown(old),
      dryRun: request.query.get('dryRun') === 'All',
      options: null,
    },
  }
}
