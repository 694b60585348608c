/**
 * A child as it should be, worked out from its custom resource anew each time. Pure, but for what the user's functions do.
 *
 * Guarantees: what it answers is its own copy; it carries name, namespace, the hash of the parts that count, and for whom it is made; neither a status nor anything that
 * only the server writes is in it. A Secret's `stringData` is in `data`, as the server keeps it.
 */
import { jsonProblem } from '../../shared/canonical.ts'
import { type Applied, apiVersionOf, type Kind, type Ref, type Snapshot } from '../kube/kind.ts'
import { Secret } from '../kube/kinds.ts'
import { TerminalError } from '../runtime/index.ts'
import { childFinalizerOf } from './finalizers.ts'
import { type HashablePart, hashAnnotation, hashOfParts, makerAnnotation } from './hash.ts'
import type { AnyResource, Editable } from './resource.ts'
import { withStringData } from './workloads.ts'

export interface Expected {
  readonly object: Applied
  readonly hash: string
  /** Which parts count. */
  readonly parts: readonly HashablePart[]
  readonly requeueAfter: number | undefined
}

/** Where the child is. */
export function refOf<C extends object>({ kind, options }: AnyResource<C>, cr: Snapshot<C>): Ref {
  const { name = cr.metadata.name, namespace = cr.metadata.namespace } = options
  const given = typeof name === 'function' ? name(cr) : name
  if (typeof given !== 'string' || given === '')
    throw new TerminalError(`a ${kind.kind} of ${cr.kind} ${cr.metadata.name} has no name`)
  if (!kind.namespaced) return { name: given }
  const where = typeof namespace === 'function' ? namespace(cr) : namespace
  if (typeof where !== 'string' || where === '')
    throw new TerminalError(
      `${kind.kind} ${given} has no namespace, as ${cr.kind} ${cr.metadata.name} has none; say \`namespace\` in its declaration`,
    )
  return { name: given, namespace: where }
}

/** The same, where a name that cannot be worked out means that there is no such child. */
export function findRef<C extends object>(resource: AnyResource<C>, cr: Snapshot<C>): Ref | undefined {
  try {
    return refOf(resource, cr)
  } catch {
    return undefined
  }
}

/** As it is called in operations, messages and the registry. */
export function indexOf({ kind }: Pick<AnyResource<object>, 'kind'>, { name, namespace }: Ref, cr: Snapshot): string {
  return `${kind.kind} ${namespace && namespace !== cr.metadata.namespace ? `${namespace}/` : ''}${name}`
}

export function expectedOf<C extends object>(
  resource: AnyResource<C>,
  cr: Snapshot<C>,
  { childFinalizer, maker }: { readonly childFinalizer: string; readonly maker: string },
): Expected {
  const { options } = resource
  const ref = refOf(resource, cr)
  const object = beginning(resource, cr, ref)
  if (options.finalizer)
    object.metadata.finalizers = [...(object.metadata.finalizers ?? []), childFinalizerOf(childFinalizer, options.id)]
  const asked = options.mutateWithCR?.(object, cr)
  if (object.metadata.name !== ref.name || (object.metadata.namespace ?? ref.namespace) !== ref.namespace)
    throw new TerminalError(
      `${indexOf(resource, ref, cr)} was renamed by mutateWithCR; its name comes from \`name\` alone`,
    )
  const tidy = cleaned(asStored(resource.kind, object))
  const wrong = jsonProblem(tidy)
  if (wrong) throw new TerminalError(`${indexOf(resource, ref, cr)}: ${wrong.path.join('.')}: ${wrong.message}`)
  const parts = options.getHashableRef?.(object, cr) ?? ['all']
  const hash = hashOfParts(tidy, parts)
  tidy.metadata.annotations = { ...tidy.metadata.annotations, [hashAnnotation]: hash, [makerAnnotation]: maker }
  return { object: tidy as unknown as Applied, hash, parts, requeueAfter: asked?.requeueAfter }
}

/** In the form in which the server keeps it. */
function asStored({ group, kind }: Kind, object: Editable<object>): Editable<object> {
  if (group !== Secret.group || kind !== Secret.kind) return object
  return withStringData(object as Parameters<typeof withStringData>[0]) as Editable<object>
}

function beginning<C extends object>({ kind, options }: AnyResource<C>, cr: Snapshot<C>, ref: Ref): Editable<object> {
  const initial: Record<string, unknown> = structuredClone(options.mutateWithInitialData(cr))
  const apiVersion = apiVersionOf(kind)
  const { metadata, ...body } = initial
  for (const [field, wanted] of Object.entries({ apiVersion, kind: kind.kind })) {
    if (body[field] !== undefined && body[field] !== wanted)
      throw new TerminalError(
        `the initial data of ${kind.kind} ${ref.name} has ${field} ${JSON.stringify(body[field])}, not ${wanted}`,
      )
  }
  const given = (metadata ?? {}) as Editable<object>['metadata']
  return {
    ...body,
    apiVersion,
    kind: kind.kind,
    metadata: { ...given, ...ref, labels: { ...given.labels }, annotations: { ...given.annotations } },
  } as Editable<object>
}

/** Without what only the server writes, and without what is empty or undefined in metadata. */
function cleaned(object: Editable<object>): Editable<object> {
  const { status: _status, metadata, ...body } = object as Editable<object> & { status?: unknown }
  const { name, namespace, labels, annotations, finalizers, ownerReferences } = metadata
  const { [hashAnnotation]: _hash, [makerAnnotation]: _maker, ...others } = annotations
  const kept = {
    name,
    ...(namespace !== undefined && { namespace }),
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(Object.keys(others).length > 0 && { annotations: others }),
    ...(finalizers && finalizers.length > 0 && { finalizers }),
    ...(ownerReferences && ownerReferences.length > 0 && { ownerReferences }),
  }
  return JSON.parse(JSON.stringify({ ...body, metadata: kept }))
}
