/**
 * Schemas without a server: what is dropped, filled in and refused. That a real server says the same is held in the tests beside this one.
 */
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { mistakeText } from '../../../devcluster/api/problems.ts'
import { validateCustom } from '../../../devcluster/api/schema/custom.ts'
import { decodeErrors, decodeMetaErrors } from '../../../devcluster/api/schema/decode.ts'
import { applyDefaults } from '../../../devcluster/api/schema/defaults.ts'
import { findDuplicates } from '../../../devcluster/api/schema/duplicates.ts'
import { finalizerWarnings, qualifiedName, validateMetaUpdate } from '../../../devcluster/api/schema/meta.ts'
import { compile } from '../../../devcluster/api/schema/pattern.ts'
import { prune } from '../../../devcluster/api/schema/prune.ts'
import { checkRules, hasRules, validateRules } from '../../../devcluster/api/schema/rules.ts'
import type { Schema } from '../../../devcluster/api/schema/schema.ts'
import { findUnknown } from '../../../devcluster/api/schema/unknown.ts'
import { validate } from '../../../devcluster/api/schema/validate.ts'

const root = (spec: Schema): Schema => ({ type: 'object', properties: { spec } })
const texts = (errors: ReturnType<typeof validate>) => errors.map(error => `${error.field}: ${mistakeText(error)}`)

test('unknown fields are dropped from a copy, and told', () => {
  const schema = root({
    type: 'object',
    properties: { a: { type: 'array', items: { type: 'object', properties: {} } } },
  })
  const given = { apiVersion: 'v1', kind: 'X', metadata: { name: 'x', foo: 1 }, spec: { a: [{ b: 1 }], c: 2 } }
  const before = structuredClone(given)
  expect(prune(schema, given)).toEqual({ apiVersion: 'v1', kind: 'X', metadata: { name: 'x' }, spec: { a: [{}] } })
  expect(findUnknown(schema, given)).toEqual(['metadata.foo', 'spec.a[0].b', 'spec.c'])
  expect(given).toEqual(before)
})

test('a key that JavaScript has a meaning for is a key like any other', () => {
  const schema = root({ type: 'object', additionalProperties: { type: 'string' } })
  const given = JSON.parse('{"spec":{"__proto__":"a","constructor":"b","toString":"c"}}')
  const kept = applyDefaults(schema, prune(schema, given))
  expect(JSON.stringify(kept)).toBe('{"spec":{"__proto__":"a","constructor":"b","toString":"c"}}')
  expect(findUnknown(root({ type: 'object', properties: {} }), given)).toHaveLength(3)
})

test('a schema that contains itself ends where the value does', () => {
  const tree: Schema = { type: 'object', properties: { name: { type: 'string', default: 'leaf' } } }
  tree.properties = { ...tree.properties, children: { type: 'array', items: tree } }
  const schema = root(tree)
  const given = { spec: { children: [{ children: [{ name: 3, x: 1 }] }] } }
  expect(findUnknown(schema, given)).toEqual(['spec.children[0].children[0].x'])
  expect(applyDefaults(schema, given)).toMatchObject({ spec: { name: 'leaf', children: [{ name: 'leaf' }] } })
  expect(validate(schema, given).map(({ field }) => field)).toEqual(['spec.children[0].children[0].name'])
  expect(hasRules(schema)).toBe(false)
})

test('a default is a copy of its own each time', () => {
  const schema = root({
    type: 'object',
    default: { list: [] },
    properties: { list: { type: 'array', items: { type: 'string' } } },
  })
  const first = applyDefaults(schema, {}) as { spec: { list: string[] } }
  first.spec.list.push('x')
  expect(applyDefaults(schema, {})).toEqual({ spec: { list: [] } })
})

test('duplicate keys are found whatever the text looks like', () => {
  expect(findDuplicates('{"a":1,"b":{"a":1},"a":2}')).toEqual(['a'])
  expect(findDuplicates('{"a":[{"x":1},{"x":1,"x":2}],"s":"{\\"x\\":1,\\"x\\"}"}')).toEqual(['a[1].x'])
  expect(findDuplicates('{"\\u0061":1, "a" : 2}')).toEqual(['a'])
  expect(findDuplicates('[1,[2,{"k":"k","k":{}}]]')).toEqual(['[1][1].k'])
})

test('expressions of RE2 are JavaScript ones, and those it does not know are refused', () => {
  const matches = (pattern: string, text: string) => {
    const compiled = compile(pattern)
    return compiled instanceof Error ? compiled.message : compiled.test(text)
  }
  expect(matches('(?i)^a[[:digit:]]\\z', 'A1')).toBe(true)
  expect(matches('^\\Qa.b\\E$', 'axb')).toBe(false)
  expect(matches('(?P<year>\\d{4})', '2020')).toBe(true)
  expect(matches('^[\\w.-]+$', 'a-b.c')).toBe(true)
  expect(matches('(a)\\1', 'aa')).toBe('error parsing regexp: invalid escape sequence: `\\1`')
})

test('rules are compiled once, and an object is held against them', () => {
  const schema = root({
    type: 'object',
    properties: { min: { type: 'integer' }, max: { type: 'integer' } },
    'x-kubernetes-validations': [
      { rule: 'self.min <= self.max', messageExpression: "'%d > %d'.format([self.min, self.max])" },
    ],
  })
  expect(checkRules(schema)).toEqual([])
  expect(validateRules(schema, { spec: { min: 1, max: 2 } }, undefined)).toEqual([])
  expect(texts(validateRules(schema, { spec: { min: 3, max: 2 } }, undefined))).toEqual(['spec: Invalid value: 3 > 2'])
  // What has not changed is let pass.
  expect(validateRules(schema, { spec: { min: 3, max: 2 } }, { spec: { min: 3, max: 2 } })).toEqual([])
})

test('rules at the root know the name', () => {
  const schema: Schema = {
    type: 'object',
    properties: { spec: { type: 'object', properties: {} } },
    'x-kubernetes-validations': [
      { rule: "self.metadata.name.startsWith('a') && self.kind == 'X'", message: 'starts with a' },
    ],
  }
  const object = (name: string) => ({ apiVersion: 'v1', kind: 'X', metadata: { name }, spec: {} })
  expect(validateCustom(schema, object('abc'))).toEqual([])
  expect(texts(validateCustom(schema, object('x')))).toEqual(['<nil>: Invalid value: starts with a'])
  const wrong = { ...schema, 'x-kubernetes-validations': [{ rule: 'self.metadata.labels.size() > 0' }] }
  expect(texts(checkRules(wrong))[0]).toContain("undefined field 'labels'")
})

test('what the library knows and the server does not is refused', () => {
  const schema = root({ type: 'integer', 'x-kubernetes-validations': [{ rule: 'cel.bind(x, self, x > 1)' }] })
  expect(texts(checkRules(schema))[0]).toContain("undeclared reference to 'cel' (in container '')")
})

test('the library of CEL is loaded for rules alone', () => {
  const folder = new URL('../../../devcluster/api/schema/', import.meta.url).href
  const script = (rules: string) => `
    import { registerHooks } from 'node:module'
    registerHooks({ load: (url, context, next) => { if (url.includes('cel-js')) console.log('cel'); return next(url, context) } })
    const { validateCustom } = await import('${folder}custom.ts')
    validateCustom({ type: 'object', properties: { spec: { type: 'integer'${rules} } } }, { spec: 1 })`
  const run = (text: string) =>
    execFileSync(process.execPath, ['--input-type=module', '-e', text], { encoding: 'utf8' })
  expect(run(script(''))).toBe('')
  expect(run(script(", 'x-kubernetes-validations': [{ rule: 'self > 0' }]"))).toContain('cel')
})

test('values of another type than a built-in kind has are told as its decoder does', () => {
  const container: Schema = {
    type: 'object',
    properties: {
      name: { type: 'string' },
      port: { type: 'integer', format: 'int32' },
      target: { 'x-kubernetes-int-or-string': true },
    },
    'x-name': 'io.k8s.api.core.v1.Container',
  }
  const pod: Schema = {
    type: 'object',
    'x-name': 'io.k8s.api.core.v1.Pod',
    properties: {
      spec: {
        type: 'object',
        'x-name': 'io.k8s.api.core.v1.PodSpec',
        properties: {
          containers: { type: 'array', items: container },
          hostNetwork: { type: 'boolean' },
          nodeSelector: { type: 'object', additionalProperties: { type: 'string' } },
        },
      },
    },
  }
  const said = (spec: unknown, metadata: unknown = {}) =>
    decodeErrors(pod, { apiVersion: 'v1', kind: 'Pod', metadata, spec })[0]
  const field = (got: string, place: string, type: string) =>
    `json: cannot unmarshal ${got} into Go struct field ${place} of type ${type}`
  expect(said({ containers: [{ name: 'a', port: 80, target: 'x' }], nodeSelector: null })).toBeUndefined()
  expect(said('x')).toBe(field('string', 'Pod.spec', 'v1.PodSpec'))
  expect(said({ containers: 'x' })).toBe(field('string', 'PodSpec.spec.containers', '[]v1.Container'))
  expect(said({ containers: ['x'] })).toBe(field('string', 'PodSpec.spec.containers', 'v1.Container'))
  expect(said({ containers: [{ name: 3 }] })).toBe(field('number', 'Container.spec.containers.name', 'string'))
  expect(said({ containers: [{ port: '80' }] })).toBe(field('string', 'Container.spec.containers.port', 'int32'))
  expect(said({ containers: [{ port: 1.5 }] })).toBe(field('number 1.5', 'Container.spec.containers.port', 'int32'))
  expect(said({ hostNetwork: 'yes' })).toBe(field('string', 'PodSpec.spec.hostNetwork', 'bool'))
  expect(said({ nodeSelector: { a: 1 } })).toBe(field('number', 'PodSpec.spec.nodeSelector', 'string'))
  expect(said({ nodeSelector: [] })).toBe(field('array', 'PodSpec.spec.nodeSelector', 'map[string]string'))
  expect(said({}, { labels: { a: 1 } })).toBe(field('number', 'ObjectMeta.metadata.labels', 'string'))
  expect(said({}, 'x')).toBe(field('string', 'Pod.metadata', 'v1.ObjectMeta'))
  expect(decodeMetaErrors({ labels: 'x' })).toEqual([field('string', 'ObjectMeta.labels', 'map[string]string')])
})

test('metadata: what never changes, and what is warned of', () => {
  const old = { name: 'x', uid: '1', generation: 2, deletionTimestamp: '2020-01-01T00:00:00Z', finalizers: ['a/b'] }
  expect(validateMetaUpdate({ ...old, finalizers: [] }, old)).toEqual([])
  expect(texts(validateMetaUpdate({ ...old, name: 'y', generation: 1, finalizers: ['a/b', 'c/d'] }, old))).toEqual([
    'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c/d"}',
    'metadata.generation: Invalid value: 1: must not be decremented',
    'metadata.name: Invalid value: "y": field is immutable',
  ])
  expect(finalizerWarnings({ finalizers: ['a/b', 'kubernetes', 'mine'] })).toEqual([
    'metadata.finalizers: "mine": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers',
  ])
  expect(qualifiedName('example.com/name')).toEqual([])
})
