/**
 * The paths of a resource in OpenAPI: which verbs are at which address, and what they take and give.
 */
import type { ResourceType, ServedVersion } from '../types.ts'

type Refer = (name: 'object' | 'list' | 'scale' | 'status') => object

const dryRun = query('dryRun', 'string')
const writes = [dryRun, query('fieldManager', 'string'), query('fieldValidation', 'string')]
const lists = [
  query('allowWatchBookmarks', 'boolean'),
  query('continue', 'string'),
  query('fieldSelector', 'string'),
  query('labelSelector', 'string'),
  query('limit', 'integer'),
  query('resourceVersion', 'string'),
  query('resourceVersionMatch', 'string'),
  query('sendInitialEvents', 'boolean'),
  query('timeoutSeconds', 'integer'),
  query('watch', 'boolean'),
]

export function pathsOf(type: ResourceType, version: ServedVersion, refer: Refer): Record<string, object> {
  const base = type.group ? `/apis/${type.group}/${version.version}` : `/api/${version.version}`
  const all = `${base}${type.namespaced ? '/namespaces/{namespace}' : ''}/${type.resource}`
  const one = `${all}/{name}`
  const has = (verb: string) => type.verbs.includes(verb)
  const kind = { group: type.group, version: version.version, kind: type.kind }
  const operation = (action: string, answer: object, parameters: object[] = [], body?: object) => ({
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': kind,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body ? { requestBody: { content: { '*/*': { schema: body } } } } : {}),
    responses: { 200: { description: 'OK', content: { 'application/json': { schema: answer } } } },
  })
  const patch = operation('patch', refer('object'), [...writes, query('force', 'boolean')], { type: 'object' })
  const paths: Record<string, object> = {
    [all]: {
      ...(has('list') ? { get: operation('list', refer('list'), lists) } : {}),
      ...(has('create') ? { post: operation('post', refer('object'), writes, refer('object')) } : {}),
      ...(has('deletecollection')
        ? { delete: operation('deletecollection', refer('object'), [dryRun, ...lists]) }
        : {}),
    },
  }
  if (has('get')) {
    paths[one] = {
      get: operation('get', refer('object')),
      ...(has('update') ? { put: operation('put', refer('object'), writes, refer('object')) } : {}),
      ...(has('patch') ? { patch } : {}),
      ...(has('delete') ? { delete: operation('delete', refer('object'), [dryRun]) } : {}),
    }
  }
  for (const [name, isServed] of [
    ['status', version.status],
    ['scale', version.scale !== undefined],
  ] as const) {
    if (!isServed) continue
    paths[`${one}/${name}`] = {
      get: operation('get', refer(name)),
      put: operation('put', refer(name), writes, refer(name)),
      patch: operation('patch', refer(name), writes, { type: 'object' }),
    }
  }
  if (type.namespaced && has('list'))
    paths[`${base}/${type.resource}`] = { get: operation('list', refer('list'), lists) }
  return paths
}

function query(name: string, type: string): object {
  return { name, in: 'query', schema: { type, uniqueItems: true } }
}
