/**
 * The schema of `metadata`. A kind's own schema may narrow the name, and says nothing else of it, so that every object, and every one embedded
 * in another, is held against this one.
 */
import type { Schema } from './schema.ts'
import { propertyOf } from './values.ts'

const text: Schema = { type: 'string' }
const yes: Schema = { type: 'boolean' }
const time: Schema = { type: 'string', format: 'date-time', nullable: true }
const integer: Schema = { type: 'integer', format: 'int64' }
const texts: Schema = { type: 'object', additionalProperties: text }

const ownerReference: Schema = {
  type: 'object',
  properties: { apiVersion: text, kind: text, name: text, uid: text, controller: yes, blockOwnerDeletion: yes },
  'x-name': 'io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference',
}

const managedFieldsEntry: Schema = {
  type: 'object',
  properties: {
    manager: text,
    operation: text,
    apiVersion: text,
    time,
    fieldsType: text,
    fieldsV1: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    subresource: text,
  },
  'x-name': 'io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry',
}

export const objectMeta: Schema = {
  type: 'object',
  properties: {
    name: text,
    generateName: text,
    namespace: text,
    selfLink: text,
    uid: text,
    resourceVersion: text,
    generation: integer,
    creationTimestamp: time,
    deletionTimestamp: time,
    deletionGracePeriodSeconds: integer,
    labels: texts,
    annotations: texts,
    ownerReferences: { type: 'array', items: ownerReference },
    finalizers: { type: 'array', items: text },
    managedFields: { type: 'array', items: managedFieldsEntry },
  },
  'x-name': 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta',
}

/** What stands at the root of an object, and of one embedded in it, whatever its schema says: the schema of that field. */
export function standing(schema: Schema, key: string): Schema | undefined {
  if (key === 'apiVersion' || key === 'kind') return text
  if (key !== 'metadata') return undefined
  const own = propertyOf(schema, key)
  return own?.['x-name'] ? own : objectMeta
}
