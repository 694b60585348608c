import { describe, expect, test } from 'vitest'
import type { Snapshot } from '../../controller/kube/kind.ts'
import { appCondition, appReadiness, appViewOf, type StatefulAppShape } from '../../controller/toolkit/appstate.ts'

const app = (status: object, generation = 1) =>
  ({
    ...{ apiVersion: 'shipmate.dev/v1alpha1', kind: 'StatefulApp', spec: { lifecycle: 'l' } },
    metadata: { name: 'orders', namespace: 'shop', generation },
    status: { observedGeneration: 1, ...status },
  }) as unknown as Snapshot<StatefulAppShape>
const condition = (type: string, status: string, message = '') => ({ type, status, reason: 'Reason', message })

describe('the condition AppState', () => {
  test.each<[string, object, object]>([
    ['is not known before anything was said', {}, { status: 'Unknown', reason: 'NotObserved' }],
    [
      'is True in the wished state',
      { state: 'Running', conditions: [condition('AtDesiredState', 'True')] },
      { status: 'True', reason: 'Running', message: 'The app is in Running.' },
    ],
    ['is True where nothing is wished', { state: 'Running' }, { status: 'True' }],
    [
      'is False on the way',
      { state: 'Start', waitingFor: 'a pod', conditions: [condition('AtDesiredState', 'False')] },
      { status: 'False', reason: 'Start', message: 'The app is in Start: a pod' },
    ],
    [
      'is not known where the state is not',
      { state: 'Unknown', waitingFor: 'orders-0 to answer' },
      { status: 'Unknown', reason: 'Unknown', message: 'The app is in Unknown: orders-0 to answer' },
    ],
    [
      'says what stalls it, though it is in the wished state',
      {
        state: 'Running',
        waitingFor: 'x',
        conditions: [condition('Stalled', 'True', 'the backup failed'), condition('AtDesiredState', 'True')],
      },
      { status: 'False', message: 'The app is in Running: the backup failed' },
    ],
    ['has a reason that a condition may have', { state: 'Read-Only' }, { reason: 'Read_Only' }],
  ])('%s', (_, status, expected) => {
    expect(appCondition(app(status))).toMatchObject({ type: 'AppState', ...expected })
  })

  test('of an older wish is not taken for the newest', () => {
    const status = { state: 'Running', conditions: [condition('AtDesiredState', 'True')] }
    expect(appCondition(app(status, 2))).toMatchObject({ status: 'False' })
  })
})

describe('an app is ready', () => {
  test('when its controller says so', () => {
    expect(appReadiness(app({ conditions: [condition('Ready', 'True')] })).ready).toBe(true)
  })

  test('not while nobody has looked at it', () => {
    const said = appReadiness(app({ observedGeneration: undefined }))
    expect(said).toMatchObject({ ready: false, reason: 'AppNotObserved' })
  })

  test('not while it waits, and then it says for what', () => {
    const said = appReadiness(
      app({ waitingFor: 'orders-0 to finish', conditions: [condition('Ready', 'False', 'no')] }),
    )
    expect(said).toMatchObject({ ready: false, message: 'orders-0 to finish' })
  })

  test('not while it is stalled, and then a person is needed', () => {
    const conditions = [condition('Stalled', 'True', 'the backup failed'), condition('Ready', 'False')]
    expect(appReadiness(app({ waitingFor: 'x', conditions }))).toMatchObject({
      ready: false,
      failed: true,
      message: 'the backup failed',
    })
  })
})

test('status.app has what is known, and nothing else', () => {
  expect(appViewOf(undefined, 'orders')).toEqual({ name: 'orders' })
  expect(appViewOf(app({ state: 'Running', path: '>Running', wish: {} }), 'orders')).toEqual({
    name: 'orders',
    state: 'Running',
    path: '>Running',
  })
})
