/**
 * A request's path and method, taken apart as RBAC and the table of resources know them. Pure.
 */
import { methodNotAllowed, unknownPath } from '../problems.ts'
import type { Resources } from '../resources/resources.ts'
import type { ApiRequest, Asked } from '../types.ts'
import type { Attributes } from './context.ts'

const isTrue = (text: string | null) => text === '' || text === '1' || text?.toLowerCase() === 'true'

/** What is asked, whether or not there is such a thing. */
export function attributesOf(request: ApiRequest): Attributes {
  const { path, method } = request
  const none = { group: '', version: '', resource: undefined, subresource: undefined, namespace: undefined }
  const nonResource = { ...none, name: undefined, path, verb: method.toLowerCase() }
  let parts: string[]
  try {
    parts = path.split('/').slice(1).map(decodeURIComponent)
  } catch {
    return nonResource
  }
  if (parts.at(-1) === '') parts.pop()
  const [root, ...rest] = parts
  const group = root === 'apis' ? rest.shift() : root === 'api' ? '' : undefined
  const version = rest.shift()
  if (group === undefined || version === undefined || rest.length === 0) return nonResource
  let watching = false
  if (rest[0] === 'watch' && rest.length > 1) {
    rest.shift()
    watching = true
  }
  let namespace: string | undefined
  if (rest[0] === 'namespaces' && rest.length > 2 && rest[2] !== 'status' && rest[2] !== 'finalize') {
    namespace = rest[1]
    rest.splice(0, 2)
  }
  const [resource, name, ...below] = rest
  const isNamespace = resource === 'namespaces' && group === ''
  return {
    group,
    version,
    resource,
    name,
    namespace: isNamespace ? name : namespace,
    subresource: below.length === 0 ? undefined : below.join('/'),
    path,
    verb: watching ? 'watch' : verbOf(request, name),
  }
}

function verbOf({ method, query }: ApiRequest, name: string | undefined): string {
  if (method === 'POST') return 'create'
  if (method === 'PUT') return 'update'
  if (method === 'PATCH') return 'patch'
  if (method === 'DELETE') return name === undefined ? 'deletecollection' : 'delete'
  if (name !== undefined) return 'get'
  const watch = query.get('watch')
  return watch !== null && isTrue(watch) ? 'watch' : 'list'
}

/** The same, of what there is. Throws 404 and 405. */
export function askedOf(attributes: Attributes, request: ApiRequest, resources: Resources): Asked {
  const { verb, group, version, resource = '', subresource, name } = attributes
  const found = resources.find(group, version, resource)
  if (!found) throw unknownPath()
  const { type } = found
  const namespace = type.namespaced ? attributes.namespace : undefined
  if (!type.namespaced && attributes.namespace !== undefined && resource !== 'namespaces') throw unknownPath()
  if (type.namespaced && namespace === undefined && name !== undefined) throw unknownPath()
  if (subresource !== undefined && !hasSubresource(found.version, subresource)) throw unknownPath()
  if (subresource === undefined && !isAllowed(type.verbs, verb, type.namespaced && namespace === undefined, name)) {
    throw methodNotAllowed()
  }
  return { verb, type, version: found.version, subresource, namespace, name, request }
}

function hasSubresource(version: Asked['version'], name: string): boolean {
  if (name === 'status') return version.status
  if (name === 'scale') return version.scale !== undefined
  return version.subresources.includes(name)
}

function isAllowed(verbs: readonly string[], verb: string, everywhere: boolean, name: string | undefined): boolean {
  if (!verbs.includes(verb)) return false
  if (everywhere) return verb === 'list' || verb === 'watch'
  if (verb === 'create') return name === undefined
  return verb === 'update' || verb === 'patch' ? name !== undefined : true
}
