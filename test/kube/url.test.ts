import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defineKind } from '../../controller/kube/kind.ts'
import { ConfigMap, Deployment, Ingress, Node } from '../../controller/kube/kinds.ts'
import { pathOf, queryOf, selectorOf } from '../../controller/kube/url.ts'
import { ShipmateError } from '../../shared/errors.ts'

describe('paths', () => {
  it.each([
    [ConfigMap, {}, '/api/v1/configmaps'],
    [ConfigMap, { namespace: 'a' }, '/api/v1/namespaces/a/configmaps'],
    [ConfigMap, { namespace: 'a', name: 'b' }, '/api/v1/namespaces/a/configmaps/b'],
    [Deployment, { namespace: 'a', name: 'b', subresource: 'scale' }, '/apis/apps/v1/namespaces/a/deployments/b/scale'],
    [Node, { name: 'n', namespace: 'ignored' }, '/api/v1/nodes/n'],
    [Ingress, { namespace: 'a' }, '/apis/networking.k8s.io/v1/namespaces/a/ingresses'],
    [
      defineKind({ group: 'shop.example.com', version: 'v1beta1', kind: 'Till' }),
      { namespace: 'a', name: 'b' },
      '/apis/shop.example.com/v1beta1/namespaces/a/tills/b',
    ],
  ])('of %o at %o', (kind, at, path) => {
    expect(pathOf(kind, at)).toBe(path)
  })

  it.each(['', '.', '..', 'a/b', '/', '../secrets/x', 'half\ud800'])(
    'refuse the name %j, which would lead somewhere else',
    name => {
      expect(() => pathOf(ConfigMap, { namespace: 'a', name })).toThrow(ShipmateError)
      expect(() => pathOf(ConfigMap, { namespace: 'a', name })).toThrow(/is no name or namespace of a ConfigMap/)
    },
  )

  it.each(['.', '..', 'a/b'])('refuse the namespace %j', namespace => {
    expect(() => pathOf(ConfigMap, { namespace, name: 'x' })).toThrow(/is no name or namespace/)
  })

  it('stay one object deep whatever the name: nothing in it is read as part of the URL', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 1 }), name => {
        let path: string
        try {
          path = pathOf(ConfigMap, { namespace: 'a', name })
        } catch (error) {
          expect(error).toBeInstanceOf(ShipmateError)
          return
        }
        const url = new URL(`https://host${path}?x=1`)
        expect(decodeURIComponent(url.pathname.split('/')[6] ?? '')).toBe(name)
        expect(url.pathname.split('/')).toHaveLength(7)
        expect(url.search).toBe('?x=1')
        expect(url.hash).toBe('')
      }),
    )
  })
})

describe('queries', () => {
  it('leave out what is undefined, and are empty when nothing is left', () => {
    expect(queryOf({ a: 1, b: undefined, c: 'x', d: false })).toBe('?a=1&c=x&d=false')
    expect(queryOf({ a: undefined })).toBe('')
  })

  it('keep every value as it was', () => {
    fc.assert(
      fc.property(fc.string(), text => {
        expect(new URLSearchParams(queryOf({ text })).get('text')).toBe(text)
      }),
    )
  })
})

describe('selectors', () => {
  it('are written as the server reads them', () => {
    expect(selectorOf({ app: 'x', tier: 'db' })).toBe('app=x,tier=db')
    expect(selectorOf('app in (a,b)')).toBe('app in (a,b)')
  })

  it('that select nothing in particular are none', () => {
    expect(selectorOf({})).toBeUndefined()
    expect(selectorOf('')).toBeUndefined()
    expect(selectorOf(undefined)).toBeUndefined()
  })
})
