import { expect, it } from 'vitest'
import { selects } from '../../controller/toolkit/pods.ts'

it.each([
  [{ matchLabels: { app: 'a' } }, true],
  [{ matchLabels: { app: 'b' } }, false],
  [{ matchExpressions: [{ key: 'app', operator: 'In', values: ['a', 'b'] }] }, true],
  [{ matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['a'] }] }, false],
  [{ matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['a'] }] }, true],
  [{ matchExpressions: [{ key: 'app', operator: 'Exists' }] }, true],
  [{ matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] }, false],
  [{ matchLabels: { app: 'a' }, matchExpressions: [{ key: 'tier', operator: 'Exists' }] }, false],
  [{}, false],
])('%j selects pods labelled app=a: %s', (selector, is) => {
  expect(selects(selector, { app: 'a' })).toBe(is)
})
