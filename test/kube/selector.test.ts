import { describe, expect, it } from 'vitest'
import type { Live } from '../../controller/kube/kind.ts'
import { matcherOf, selectionOf } from '../../controller/kube/selector.ts'

describe('a label selector', () => {
  it.each([
    ['', {}, true],
    ['app', { app: '' }, true],
    ['app', {}, false],
    ['!app', {}, true],
    ['! app', { app: 'x' }, false],
    ['app=x', { app: 'x' }, true],
    ['app==x', { app: 'x' }, true],
    [' app = x ', { app: 'x' }, true],
    ['app=x', { app: 'y' }, false],
    ['app=x', {}, false],
    ['app=', { app: '' }, true],
    ['app!=x', { app: 'y' }, true],
    ['app!=x', { app: 'x' }, false],
    ['app!=x', {}, true],
    ['app in (x,y)', { app: 'y' }, true],
    ['app in (x, y)', { app: 'y' }, true],
    ['app in(x)', { app: 'x' }, true],
    ['app in (x)', {}, false],
    ['app in ()', { app: '' }, true],
    ['app notin (x,y)', { app: 'x' }, false],
    ['app notin (x,y)', {}, true],
    ['app notin (x,y)', { app: 'z' }, true],
    ['app=x,tier=db', { app: 'x', tier: 'db' }, true],
    ['app=x,tier=db', { app: 'x' }, false],
    ['app in (x,y),tier notin (db,web),!old', { app: 'x', tier: 'cache' }, true],
    ['app in (x,y),tier notin (db,web),!old', { app: 'x', tier: 'web' }, false],
    ['app.kubernetes.io/name=x', { 'app.kubernetes.io/name': 'x' }, true],
  ] as [string, Record<string, string>, boolean][])('%j of %o is %s', (selector, labels, isSelected) => {
    expect(matcherOf(selector)?.(labels)).toBe(isSelected)
  })

  it('may be given as labels', () => {
    expect(matcherOf({ app: 'x', tier: 'db' })?.({ app: 'x', tier: 'db', more: '' })).toBe(true)
    expect(matcherOf({ app: 'x' })?.({})).toBe(false)
    expect(matcherOf({})?.({})).toBe(true)
    expect(matcherOf(undefined)?.({ any: 'thing' })).toBe(true)
  })

  it.each(['app>1', 'app < 2', 'a b', 'app in x', '(', 'app=x,,', 'x=(y)'])('%j is left to the server', selector => {
    expect(matcherOf(selector)).toBeUndefined()
  })
})

describe('a selection', () => {
  const object = (name: string, namespace: string, labels = {}) => ({ metadata: { name, namespace, labels } }) as Live

  it('is by labels and by the name', () => {
    const selects = selectionOf({ labels: { app: 'x' }, fields: { 'metadata.name': 'a' } })
    expect(selects?.(object('a', 'n', { app: 'x' }))).toBe(true)
    expect(selects?.(object('b', 'n', { app: 'x' }))).toBe(false)
    expect(selects?.(object('a', 'n'))).toBe(false)
  })

  it('is by fields as the server writes them', () => {
    const selects = selectionOf({ fields: 'metadata.name!=a,metadata.namespace==n' })
    expect(selects?.(object('b', 'n'))).toBe(true)
    expect(selects?.(object('a', 'n'))).toBe(false)
    expect(selects?.(object('b', 'm'))).toBe(false)
  })

  it('by anything else is left to the server', () => {
    expect(selectionOf({ fields: 'status.phase=Running' })).toBeUndefined()
    expect(selectionOf({ fields: { 'metadata.name': 'a', 'spec.nodeName': 'n' } })).toBeUndefined()
    expect(selectionOf({ labels: 'generation>5' })).toBeUndefined()
  })
})
