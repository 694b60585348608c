/**
 * Operators with one deliberate fault each, as people write them: on the runtime alone, for a kind with a value that a ConfigMap repeats.
 */
import { ConfigMap, defineKind, NotFound } from 'shipmate/kube'
import { type Context, type Predicate, predicates } from 'shipmate/runtime'
import type { Operator } from 'shipmate/testing'

interface NoteShape {
  spec: { text: string }
  status?: { seen?: string; at?: string }
}
export const Note = defineKind<NoteShape>({ group: 'test.example.com', version: 'v1', kind: 'Note' })
export const note = {
  apiVersion: 'test.example.com/v1',
  kind: 'Note',
  metadata: { name: 'sample', namespace: 'default' },
  spec: { text: 'hello' },
}
const finalizer = 'test.example.com/finalizer'

const object = { type: 'object' }
const crd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'notes.test.example.com' },
  spec: {
    group: 'test.example.com',
    names: { kind: 'Note', plural: 'notes', singular: 'note', listKind: 'NoteList' },
    scope: 'Namespaced',
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true, subresources: { status: {} } },
        schema: {
          openAPIV3Schema: {
            ...object,
            properties: {
              spec: { ...object, properties: { text: { type: 'string' } } },
              status: { ...object, properties: { seen: { type: 'string' }, at: { type: 'string' } } },
            },
          },
        },
      },
    ],
  },
}

interface Habits {
  readonly verbs?: string[]
  readonly when?: Predicate<object>
}
type Reconcile = (context: Context<NoteShape>) => Promise<void>

function operatorOf(
  reconcile: Reconcile,
  { verbs = ['get', 'list', 'watch', 'create', 'patch', 'delete'], when }: Habits = {},
): Operator {
  return {
    name: 'notes',
    crds: () => [crd],
    rbac: () => ({
      rules: [
        { apiGroups: ['test.example.com'], resources: ['notes'], verbs: ['get', 'list', 'watch', 'patch', 'update'] },
        { apiGroups: ['test.example.com'], resources: ['notes/status'], verbs: ['patch'] },
        { apiGroups: [''], resources: ['configmaps'], verbs },
        { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
      ],
    }),
    addTo(manager) {
      manager.controller(Note, { when }).owns(ConfigMap).reconcile(reconcile)
    },
  }
}

function childOf({ kind, apiVersion, metadata, spec }: Context<NoteShape>['object']) {
  const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true }
  return {
    metadata: { name: metadata.name, namespace: metadata.namespace, ownerReferences: [owner] },
    data: { text: spec.text },
  }
}

/** As it should be. */
export const sound = operatorOf(async ({ object, client }) => {
  if (object.metadata.deletionTimestamp) return
  await client.apply(ConfigMap, childOf(object))
  await client.status(Note, object, { seen: object.spec.text })
})

export const withoutRule = operatorOf(
  async ({ object, client }) => {
    await client.apply(ConfigMap, childOf(object))
  },
  { verbs: ['get', 'list', 'watch'] },
)

/** A new child each time: it remembers what it has made in memory alone. */
export const generatesNames = (): Operator => {
  const made = new Set<string>()
  return operatorOf(async ({ object, client }) => {
    if (object.metadata.deletionTimestamp || made.has(object.metadata.uid)) return
    const { metadata, data } = childOf(object)
    const { name, ...rest } = metadata
    await client.live.create(ConfigMap, { metadata: { ...rest, generateName: `${name}-` }, data })
    made.add(object.metadata.uid)
  })
}

/** What it makes elsewhere has no owner, and it has no finalizer: it counts on seeing the deletion. */
export const forgetsFinalizer = operatorOf(async ({ object, client }) => {
  if (object.metadata.deletionTimestamp) return
  const { metadata, data } = childOf(object)
  await client.apply(ConfigMap, { metadata: { name: metadata.name, namespace: 'kube-public' }, data })
})

/** Deaf to its own writes, so that it rests; but each look at the object is a write. */
export const writesAlways = operatorOf(tellsTime, { when: predicates.generationChanged })

/** The same, woken by its own writes. */
export const neverRests = operatorOf(tellsTime)

async function tellsTime({ object, client }: Context<NoteShape>): Promise<void> {
  if (object.metadata.deletionTimestamp) return
  await client.apply(ConfigMap, childOf(object))
  const status = { seen: object.spec.text, at: object.metadata.resourceVersion }
  await client.live.patch(Note, object.metadata, { merge: { status } }, { subresource: 'status' })
}

/** What was there before it looked is no event. */
export const actsOnEvents: Operator = {
  ...sound,
  addTo(manager) {
    let isLooking = false
    manager.clock.after(1000, () => (isLooking = true))
    const controller = manager.controller(Note).owns(ConfigMap)
    controller.reconcile(async ({ object, client }) => {
      if (isLooking && !object.metadata.deletionTimestamp) await client.apply(ConfigMap, childOf(object))
    })
  },
}

/** Holds its custom resource, and lets it go before what it made elsewhere is gone. */
export const letsGoTooSoon = (): Operator => {
  const made = new Map<string, { name: string; namespace: string }>()
  return operatorOf(async ({ object, client }) => {
    const { metadata, data } = childOf(object)
    const elsewhere = { name: metadata.name, namespace: 'kube-public' }
    if (object.metadata.deletionTimestamp) {
      const known = made.get(object.metadata.uid)
      const others = (object.metadata.finalizers ?? []).filter(one => one !== finalizer)
      await client.live.patch(Note, object.metadata, { merge: { metadata: { finalizers: others } } })
      if (known) await client.live.delete(ConfigMap, known).catch(unlessGone)
      return
    }
    if (!object.metadata.finalizers?.includes(finalizer))
      await client.live.patch(Note, object.metadata, { merge: { metadata: { finalizers: [finalizer] } } })
    await client.apply(ConfigMap, { metadata: elsewhere, data })
    made.set(object.metadata.uid, elsewhere)
  })
}

function unlessGone(error: unknown): void {
  if (!(error instanceof NotFound)) throw error
}
