/**
 * When an app's status is left as it is because more will be known in a moment.
 */
import { describe, expect, it } from 'vitest'
import { isUntried, sayAgain } from '../../controller/app/say-again.ts'
import type { App, PodView } from '../../controller/app/view.ts'

const condition = (type: string, status: string, reason = 'Some', message = 'Words.') => ({
  ...{ type, status, reason, message, lastTransitionTime: '2026-01-01T00:00:00Z' },
})

function app(conditions: object[], more: { seen?: number; pods?: string[] } = {}): App {
  const pods = (more.pods ?? ['one']).map(uid => ({ name: uid, uid, state: 'Running', reason: 'Observed' }))
  return {
    metadata: { name: 'orders', namespace: 'test', uid: 'u', generation: 2 },
    spec: { lifecycle: 'sample' },
    status: { observedGeneration: more.seen ?? 2, conditions, pods },
  } as unknown as App
}

function said(cr: App, isDeleting = false): { isSaid: boolean; words: string[] } {
  const words: string[] = []
  const say = (sort: string) => (reason: string, message: string) => void words.push(`${sort} ${reason}: ${message}`)
  return {
    isSaid: sayAgain({ cr: cr as never, isDeleting, waitFor: say('waits'), stall: say('stalled') }),
    words,
  }
}

describe('what a status says', () => {
  const fine = condition('ReconciliationSuccess', 'True')
  it('is said again: that all is well, what is waited for, or that a person has to help', () => {
    expect(said(app([condition('Ready', 'True'), fine]))).toEqual({ isSaid: true, words: [] })
    expect(said(app([condition('Ready', 'False', 'OnItsWay'), fine])).words).toEqual(['waits OnItsWay: Words.'])
    const stalled = [condition('Ready', 'False', 'NoPath'), condition('Stalled', 'True', 'NoPath')]
    expect(said(app(stalled)).words).toEqual(['stalled NoPath: Words.'])
  })

  it('is not said again of another spec, of a failure, before anything was said, or while the app is being deleted', () => {
    const ready = [condition('Ready', 'True'), fine]
    expect(said(app(ready, { seen: 1 })).isSaid).toBe(false)
    expect(said(app([condition('Ready', 'False'), condition('ReconciliationSuccess', 'False')])).isSaid).toBe(false)
    expect(said(app([])).isSaid).toBe(false)
    expect(said(app(ready), true).isSaid).toBe(false)
  })
})

describe('pods that this process has not yet tried to reach', () => {
  const pod = (uid: string, more: Partial<PodView> = {}) =>
    ({ name: uid, uid, isTerminating: false, agent: undefined, ...more }) as PodView
  const tried = { agent: { isReachable: false } as PodView['agent'] }
  const everyone = () => true

  it('are waited for, if the status tells of them', () => {
    expect(isUntried(app([]), [pod('one')], everyone)).toBe(true)
    expect(isUntried(app([], { pods: ['one', 'two'] }), [pod('one', tried), pod('two')], everyone)).toBe(true)
  })

  it('are not waited for when all were tried, when nobody tries, or when the pods are others than those told of', () => {
    expect(isUntried(app([]), [pod('one', tried)], everyone)).toBe(false)
    expect(isUntried(app([]), [pod('one')], () => false)).toBe(false)
    expect(isUntried(app([]), [pod('new')], everyone)).toBe(false)
    expect(isUntried(app([]), [pod('one'), pod('two')], everyone)).toBe(false)
    expect(isUntried(app([]), [pod('one', { isTerminating: true })], everyone)).toBe(false)
  })
})
