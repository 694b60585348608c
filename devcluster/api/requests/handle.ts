/**
 * One request, one answer: who may, what is asked, and which part answers it.
 */
import { ApiError, forbidden, internal, methodNotAllowed } from '../problems.ts'
import type { ApiRequest, ApiResponse, Asked } from '../types.ts'
import { plainAnswer, statusAnswer, withWarnings } from './answer.ts'
import { askedOf, attributesOf } from './asked.ts'
import { create, patch, update } from './change.ts'
import type { Attributes, Context } from './context.ts'
import { remove, removeAll } from './delete.ts'
import { health } from './health.ts'
import { get, list } from './read.ts'
import { bind } from './subresources/binding.ts'
import { ephemeral } from './subresources/ephemeral.ts'
import { evict } from './subresources/eviction.ts'
import { log } from './subresources/log.ts'
import { scale } from './subresources/scale.ts'
import { requestToken } from './subresources/token.ts'
import { watch } from './watch.ts'

type Answer = (context: Context, asked: Asked) => Promise<ApiResponse>

const verbs: Readonly<Record<string, Answer>> = {
  get,
  list,
  watch,
  create,
  update,
  patch,
  delete: remove,
  deletecollection: removeAll,
}

const object = { get, update, patch }
const subresources: Readonly<Record<string, Readonly<Record<string, Answer>>>> = {
  status: object,
  scale: { get: scale, update: scale, patch: scale },
  finalize: { update },
  ephemeralcontainers: { get, update: ephemeral, patch: ephemeral },
  resize: object,
  approval: object,
  log: { get: log },
  eviction: { create: evict },
  binding: { create: bind },
  token: { create: requestToken },
}

export interface Handled {
  readonly attributes: Attributes
  readonly response: ApiResponse
}

export async function handle(context: Context, request: ApiRequest): Promise<Handled> {
  const attributes = attributesOf(request)
  const told: string[] = []
  const heard = { ...request, warn: (text: string) => void told.push(text) }
  try {
    return { attributes, response: withWarnings(await answer(context, heard, attributes), told) }
  } catch (error) {
    const known = error instanceof ApiError ? error : internal(error instanceof Error ? error.message : String(error))
    if (!(error instanceof ApiError)) context.onError(error)
    return { attributes, response: withWarnings(statusAnswer(known.status), told) }
  }
}

async function answer(context: Context, request: ApiRequest, attributes: Attributes): Promise<ApiResponse> {
  await checkAllowed(context, request, attributes)
  const routed = health(request) ?? (await route(context, request))
  if (routed) return routed
  const { group, version } = attributes
  const isServed = context.resources
    .all()
    .some(type => type.group === group && type.versions.some(one => one.version === version && one.served))
  if (attributes.resource === undefined || !isServed) return plainAnswer(404, '404 page not found\n')
  const asked = askedOf(attributes, request, context.resources)
  const found = asked.subresource === undefined ? verbs[asked.verb] : subresources[asked.subresource]?.[asked.verb]
  if (!found) throw methodNotAllowed()
  return found(context, asked)
}

async function route(context: Context, request: ApiRequest): Promise<ApiResponse | undefined> {
  for (const one of context.hooks.routes) {
    const response = await one(request)
    if (response) return response
  }
  return undefined
}

export async function checkAllowed(context: Context, request: ApiRequest, attributes: Attributes): Promise<void> {
  const { authorize } = context.hooks
  if (!authorize) return
  const { user } = request
  const { verb, group, resource, subresource, namespace, path } = attributes
  const name = attributes.name ?? selectedName(request, verb)
  const { allowed, reason } = await authorize({ ...attributes, name }, user)
  if (allowed) return
  const more = reason ? `: ${reason}` : ''
  const who = `User ${JSON.stringify(user.name)}`
  if (resource === undefined) {
    throw new ApiError(403, 'Forbidden', `forbidden: ${who} cannot ${verb} path ${JSON.stringify(path)}${more}`, {})
  }
  const what = subresource ? `${resource}/${subresource}` : resource
  const where =
    namespace && resource !== 'namespaces' ? `in the namespace ${JSON.stringify(namespace)}` : 'at the cluster scope'
  throw forbidden(
    { group, resource },
    name ?? '',
    `${who} cannot ${verb} resource ${JSON.stringify(what)} in API group ${JSON.stringify(group)} ${where}${more}`,
  )
}

/** Who may read objects of some names only may list and watch each of them by its name. */
function selectedName({ query }: ApiRequest, verb: string): string | undefined {
  if (!['list', 'watch', 'deletecollection'].includes(verb)) return undefined
  return /^metadata\.name==?([^,=]+)$/.exec(query.get('fieldSelector') ?? '')?.[1]
}
