/**
 * What is written on objects, and selectors that are written as text.
 */
import { expect, test } from 'vitest'
import { claimText, parseClaim, parseReplicas } from '../../../controller/app/workload/marks.ts'
import { budgetSelects, parseSelector } from '../../../controller/app/workload/selector.ts'
import { anApp } from './objects.ts'

test('a claim is read as it was written', () =>
  expect(parseClaim(claimText(anApp()))).toEqual({ namespace: 'shop', name: 'orders', uid: 'app-1' }))

test.each([undefined, '', 'shop/orders', 'orders uid', 'a/b/c d', 'shop/orders uid more'])('%j is no claim', text =>
  expect(parseClaim(text)).toBeUndefined(),
)

test.each([
  ['3', 3],
  ['0', undefined],
  ['-1', undefined],
  ['3.5', undefined],
  ['9999999999', undefined],
  ['three', undefined],
  [undefined, undefined],
])('%j keeps %j replicas', (text, replicas) => expect(parseReplicas(text)).toBe(replicas))

test.each([
  ['app=db', { matchLabels: { app: 'db' } }],
  ['app==db,example.com/tier=a', { matchLabels: { app: 'db', 'example.com/tier': 'a' } }],
  ['app in (a, b)', { matchExpressions: [{ key: 'app', operator: 'In', values: ['a', 'b'] }] }],
  [
    'app=db,tier notin (x),zone!=y,!gone,there',
    {
      matchLabels: { app: 'db' },
      matchExpressions: [
        { key: 'tier', operator: 'NotIn', values: ['x'] },
        { key: 'zone', operator: 'NotIn', values: ['y'] },
        { key: 'gone', operator: 'DoesNotExist' },
        { key: 'there', operator: 'Exists' },
      ],
    },
  ],
  ['', undefined],
  ['app>3', undefined],
])('the selector %j', (text, selector) => expect(parseSelector(text)).toEqual(selector))

test('an empty selector of a budget means every pod, none at all means none', () => {
  expect(budgetSelects({}, { a: 'b' })).toBe(true)
  expect(budgetSelects(undefined, { a: 'b' })).toBe(false)
  expect(budgetSelects({ matchLabels: { a: 'c' } }, { a: 'b' })).toBe(false)
})
