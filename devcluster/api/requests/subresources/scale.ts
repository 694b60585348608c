/**
 * `/scale`: how many there are to be, in the same words for every kind that has replicas.
 */
import { timeOf } from '../../../../shared/clock.ts'
import { updateManaged } from '../../patch/managed.ts'
import { fromScaleManaged, toScaleManaged } from '../../patch/scale.ts'
import { invalid } from '../../problems.ts'
import { namesOf, simplePath } from '../../resources/json-path.ts'
import { typeNamed } from '../../resources/link.ts'
import { nativeForm } from '../../resources/native.ts'
import { selectorText } from '../../resources/strategies/selector.ts'
import type { ApiResponse, Asked, Obj, ScalePaths } from '../../types.ts'
import { formOf, respond, textIn } from '../answer.ts'
import { checkName, retried } from '../change.ts'
import { apiVersionOf, type Context } from '../context.ts'
import { shown } from '../convert.ts'
import { decode, type Wanted } from '../decode.ts'
import { patched, patchKind } from '../patched.ts'
import { stored as storedOf } from '../read.ts'
import { updateObject } from '../write.ts'
import { writeOptions } from '../write-options.ts'

const apiVersion = 'autoscaling/v1'

const wanted = (): Wanted => ({
  kind: 'Scale',
  apiVersion,
  schema: typeNamed('io.k8s.api.autoscaling.v1.Scale'),
  isCustom: false,
})

export async function scale(context: Context, asked: Asked): Promise<ApiResponse> {
  const paths = asked.version.scale as ScalePaths
  const form = formOf(asked.request.headers.accept, false)
  const live = async () => {
    const stored = storedOf(context, asked)
    return { stored, object: await shown(stored, asked, context.hooks) }
  }
  const answer = (object: Obj) => {
    const made = scaleOf(object, asked, paths)
    delete made.metadata.managedFields
    return respond(200, textIn(form, made, asked, context.hooks), form)
  }
  if (asked.verb === 'get') return answer((await live()).object)

  const isPatch = asked.verb === 'patch'
  const kind = isPatch ? patchKind(asked) : undefined
  const options = writeOptions(asked.request, isPatch ? 'PatchOptions' : 'UpdateOptions', kind === 'apply')
  const change = kind
    ? await patched(context, asked, kind, options, wanted())
    : await decode(asked.request, wanted(), options, context.resources).then(decoded => () => decoded)
  return retried(asked, true, async () => {
    const { stored, object } = await live()
    const before = scaleOf(object, asked, paths)
    // No replicas are none: whoever asks for 0 has no field to manage.
    const next = nativeForm(wanted().schema, change(before).object)
    checkName(next, asked.name ?? '')
    checkReplicas(next, asked)
    const managed = {
      live: before,
      next,
      manager: options.manager,
      schema: wanted().schema,
      apiVersion,
      subresource: 'scale',
      now: timeOf(context.clock.now()),
    }
    const scaled = kind === 'apply' ? next : updateManaged(managed)
    const version = apiVersionOf(asked.type.group, asked.version.version)
    const entries = fromScaleManaged(
      object.metadata.managedFields,
      scaled.metadata.managedFields,
      version,
      replicasPaths(asked),
    )
    const { managedFields: _, ...metadata } = object.metadata
    const { resourceVersion } = next.metadata
    const wish = withReplicas(object, paths, Number(next.spec?.replicas ?? 0))
    wish.metadata = {
      ...metadata,
      ...(resourceVersion ? { resourceVersion } : {}),
      ...(entries ? { managedFields: entries } : {}),
    }
    return answer(await updateObject(context, asked, stored, object, { object: wish, isManaged: true }, options))
  })
}

function replicasPaths({ type }: Asked) {
  return Object.fromEntries(type.versions.map(one => [apiVersionOf(type.group, one.version), one.scale?.spec]))
}

function checkReplicas(next: Obj, { type, version }: Asked): void {
  const replicas = next.spec?.replicas ?? 0
  if (replicas >= 0) return
  if (type.custom !== undefined) {
    const detail = 'should be a non-negative integer'
    throw invalid(type, next.metadata.name, [
      { mistake: 'FieldValueInvalid', field: version.scale?.spec ?? '', value: replicas, detail },
    ])
  }
  throw invalid({ group: 'autoscaling', kind: 'Scale' }, next.metadata.name, [
    {
      mistake: 'FieldValueInvalid',
      field: 'spec.replicas',
      value: replicas,
      detail: 'must be greater than or equal to 0',
    },
  ])
}

function scaleOf(object: Obj, asked: Asked, paths: ScalePaths): Obj {
  const { name, namespace, uid, resourceVersion, creationTimestamp, managedFields } = object.metadata
  const entries = toScaleManaged(managedFields, replicasPaths(asked))
  const replicas = Number(simplePath(paths.spec)(object) ?? 0)
  const selector = paths.selector === undefined ? undefined : simplePath(paths.selector)(object)
  const text = typeof selector === 'string' ? selector : selector ? selectorText(selector) : undefined
  return {
    kind: 'Scale',
    apiVersion,
    metadata: {
      name,
      ...(namespace ? { namespace } : {}),
      uid,
      resourceVersion,
      creationTimestamp,
      ...(entries && asked.verb !== 'get' ? { managedFields: entries } : {}),
    },
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: Number(simplePath(paths.status)(object) ?? 0), ...(text ? { selector: text } : {}) },
  }
}

function withReplicas(object: Obj, { spec }: ScalePaths, replicas: number): Obj {
  const copy = structuredClone(object)
  const names = namesOf(spec)
  const last = names.pop() as string
  let at = copy as Record<string, unknown>
  for (const name of names) {
    at[name] ??= {}
    at = at[name] as Record<string, unknown>
  }
  at[last] = replicas
  return copy
}
