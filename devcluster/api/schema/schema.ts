/**
 * The shape of a kind: OpenAPI v3 as a CustomResourceDefinition has it. Built-in kinds have the same, linked: there are no `$ref`s, a type that several
 * fields have is one object, and a type may contain itself. So every function walks a value beside its schema and ends when the value does.
 */
import type { Json } from '../types.ts'

export interface Schema {
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  format?: string
  title?: string
  description?: string
  nullable?: boolean
  default?: Json
  example?: Json
  enum?: Json[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema | boolean
  items?: Schema
  minimum?: number
  maximum?: number
  exclusiveMinimum?: boolean
  exclusiveMaximum?: boolean
  multipleOf?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  minProperties?: number
  maxProperties?: number
  allOf?: Schema[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  not?: Schema
  'x-kubernetes-preserve-unknown-fields'?: boolean
  'x-kubernetes-embedded-resource'?: boolean
  'x-kubernetes-int-or-string'?: boolean
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  'x-kubernetes-list-map-keys'?: string[]
  'x-kubernetes-map-type'?: 'atomic' | 'granular'
  'x-kubernetes-validations'?: ValidationRule[]
  /** Of built-in kinds, for strategic merge: `merge`, `replace`, `retainKeys`, or two of them with a comma. */
  'x-kubernetes-patch-strategy'?: string
  'x-kubernetes-patch-merge-key'?: string
  'x-kubernetes-unions'?: Json
  /** Of a built-in type, its name in the published OpenAPI: `io.k8s.api.core.v1.PodSpec`. */
  'x-name'?: string
}

export interface ValidationRule {
  rule: string
  message?: string
  messageExpression?: string
  reason?: string
  fieldPath?: string
  optionalOldSelf?: boolean
}
