import { describe, expect, it } from 'vitest'
import { lifecycleView } from '../../../controller/app/lifecycle-view.ts'
import type { App, Op } from '../../../controller/app/view.ts'
import { reviewApp } from '../../../controller/webhook/review/app.ts'
import { reviewLifecycle } from '../../../controller/webhook/review/lifecycle.ts'
import { reviewOperation, reviewSchedule } from '../../../controller/webhook/review/operation.ts'
import { rightsForApp, rightsForOperation } from '../../../controller/webhook/review/rights.ts'

const spec = {
  states: [
    { name: 'Start', next: ['Running', 'Stopping'] },
    { name: 'Running', when: 'probes.up.ok', next: ['Servicing', 'Stopping'] },
    { name: 'Servicing', actions: ['backup', 'reload'], next: ['Running'] },
    { name: 'Stopping', actions: ['stop'], next: ['End'] },
    { name: 'End', verb: 'Delete' },
  ],
  preStop: 'stop',
  probes: [{ name: 'up', tcp: { port: 1 } }],
  actions: [
    {
      name: 'backup',
      exec: { command: ['true'] },
      params: {
        to: { type: 'string', pattern: '^/backup/' },
        password: { type: 'string', writeOnly: true, required: false },
      },
    },
    { name: 'reload', exec: { command: ['true'] } },
    { name: 'stop', exec: { command: ['true'] }, timeout: '50s', cancel: { grace: '10s' } },
  ],
}
const lifecycle = lifecycleView({ metadata: { name: 'postgres' }, spec } as never)
const template = { spec: { template: { spec: { containers: [] } } } }
const app = (over: object = {}, state?: string) =>
  ({
    metadata: { name: 'orders', namespace: 'shop' },
    spec: { lifecycle: 'postgres', workload: { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db' }, ...over },
    ...(state !== undefined && { status: { state } }),
  }) as unknown as App
const lifecycles = ['postgres', 'redis']
const review = (given: App, old?: App, known: typeof lifecycle | undefined = lifecycle) =>
  reviewApp({ app: given, old, lifecycle: known, lifecycles })

describe('an app', () => {
  it('that can be carried out is taken', () => {
    for (const desired of [undefined, { state: 'Running' }, { state: 'Servicing', action: 'reload' }, { state: 'End' }])
      expect(review(app({ desired }, 'Running'))).toEqual({ problems: [], warnings: [] })
  })

  it.each([
    [{ state: 'Runing' }, 'spec.desired.state: "Runing" is no state in lifecycle postgres; did you mean "Running"?'],
    [{ state: 'Servicing' }, 'spec.desired.action: Servicing has several actions; name one: backup, reload'],
    [
      { state: 'Servicing', action: 'backpu', params: {} },
      'spec.desired.action: "backpu" is no action of state Servicing in lifecycle postgres; did you mean "backup"?',
    ],
    [{ state: 'Servicing', action: 'backup', params: { to: '/etc' } }, 'spec.desired.params.to is "/etc", but'],
    [
      { state: 'Servicing', action: 'backup', params: { to: '/backup/1', password: 'x' } },
      'is secret: give it by paramsFrom',
    ],
  ])('that wishes %j is refused, with the field and what would be accepted', (desired, why) => {
    const { problems } = review(app({ desired }, 'Running'))
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(why)
  })

  it('that wishes what no path leads to from where it is, is refused, with what could be wished', () => {
    const { problems } = review(app({ desired: { state: 'Running' } }, 'End'))
    expect(problems).toEqual([
      expect.stringMatching(
        /^spec\.desired\.state: no path leads from End to Running in lifecycle postgres: .*\(from End one can wish: End\)$/,
      ),
    ])
    // Where it is, is not known: from where it begins there is a way.
    expect(review(app({ desired: { state: 'Running' } }, 'Unknown')).problems).toEqual([])
    expect(review(app({ desired: { state: 'Running' } })).problems).toEqual([])
  })

  it('whose lifecycle is not there is refused, with the nearest name', () => {
    const { problems } = reviewApp({ app: app({ lifecycle: 'postgers' }), lifecycle: undefined, lifecycles })
    expect(problems).toEqual([
      'spec.lifecycle: there is no Lifecycle "postgers" in namespace shop; did you mean "postgres"?',
    ])
  })

  it('whose wish stays as it is can be changed otherwise, whatever has become of its lifecycle', () => {
    const old = app({ desired: { state: 'Gone' }, paused: false })
    const paused = app({ desired: { state: 'Gone' }, paused: true })
    expect(review(paused, old).problems).toEqual([])
    expect(reviewApp({ app: paused, old, lifecycle: undefined, lifecycles }).problems).toEqual([])
    expect(review(app({ desired: { state: 'Gone' }, paused: false, lifecycle: 'postgres' }), old)).toEqual({
      problems: [],
      warnings: [],
    })
  })

  it('whose pods end before its stop is warned of', () => {
    const { problems, warnings } = review(app({ workload: undefined, template }))
    expect(problems).toEqual([])
    expect(warnings).toEqual([expect.stringContaining('terminationGracePeriodSeconds: 30, but stop')])
    expect(warnings[0]).toContain('may take 92 s')
    const long = { spec: { template: { spec: { terminationGracePeriodSeconds: 92 } } } }
    expect(review(app({ workload: undefined, template: long })).warnings).toEqual([])
  })
})

describe('a lifecycle', () => {
  it('that can be used is taken', () => expect(reviewLifecycle(spec)).toEqual({ problems: [], warnings: [] }))

  it('that cannot is refused, with every field', () => {
    const wrong = { ...spec, states: [{ name: 'Start', next: ['Runing'] }, ...spec.states.slice(1)] }
    expect(reviewLifecycle(wrong).problems).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^spec\.states\[0\]\.next\[0\]: .*"Runing".*did you mean "Running"/),
      ]),
    )
    expect(reviewLifecycle(undefined).problems).not.toEqual([])
    // Who changes a label only is not told of it.
    expect(reviewLifecycle(wrong, structuredClone(wrong)).problems).toEqual([])
  })
})

describe('an operation', () => {
  const known = { app: { lifecycle: 'postgres' }, apps: ['orders'], lifecycle }
  it('is taken, or refused with the field', () => {
    expect(reviewOperation({ app: 'orders', action: 'reload' }, known).problems).toEqual([])
    expect(reviewOperation({ app: 'order', action: 'reload' }, { ...known, app: undefined }).problems).toEqual([
      'spec.app: there is no StatefulApp "order" in this namespace; did you mean "orders"?',
    ])
    expect(reviewOperation({ app: 'orders', action: 'relaod' }, known).problems).toEqual([
      'spec.action: "relaod" is no action in lifecycle postgres; did you mean "reload"?',
    ])
    expect(reviewOperation({ app: 'orders', action: 'backup', params: { to: 1 } }, known).problems).toEqual([
      expect.stringContaining('spec.params.to'),
    ])
  })

  it('by the clock may come before its app, but not with a clock that nobody has', () => {
    const template = { app: 'orders', action: 'reload' }
    const daily = { schedule: '@daily', timeZone: 'Etc/UTC', template }
    expect(reviewSchedule(daily, known)).toEqual({ problems: [], warnings: [] })
    expect(reviewSchedule(daily, { ...known, app: undefined })).toMatchObject({
      problems: [],
      warnings: [expect.stringContaining('spec.template.app')],
    })
    expect(reviewSchedule({ ...daily, timeZone: 'Europe/Berlni' }, known).problems).toEqual([
      expect.stringContaining('Europe/Berlin'),
    ])
    expect(reviewSchedule({ ...daily, schedule: '61 * * * *' }, known).problems).toHaveLength(1)
    expect(reviewSchedule({ ...daily, template: { ...template, action: 'x' } }, known).problems).toHaveLength(1)
  })
})

describe('the rights of who writes', () => {
  const said = (rights: ReturnType<typeof rightsForApp>) =>
    rights.map(({ verb, resource, kind, name }) => [verb, resource ?? kind, name].filter(Boolean).join(' '))

  it('are those to do by hand what the app does for them', () => {
    expect(said(rightsForApp(app()))).toEqual(['patch StatefulSet db'])
    expect(said(rightsForApp(app({ workload: undefined, template })))).toEqual([
      'create statefulsets',
      'create services',
    ])
    expect(said(rightsForApp(app({ workload: undefined, template: { ...template, configMaps: {} } })))).toContain(
      'create configmaps',
    )
    expect(said(rightsForApp(app({ onEnd: 'DeleteWithVolumes' })))).toEqual([
      'patch StatefulSet db',
      'delete StatefulSet db',
      'delete persistentvolumeclaims',
    ])
  })

  it('are not asked for again by who leaves it alone', () => {
    expect(rightsForApp(app({ desired: { state: 'Running' } }), app())).toEqual([])
    expect(said(rightsForApp(app({ onEnd: 'DeleteWithVolumes' }), app()))).toEqual([
      'delete StatefulSet db',
      'delete persistentvolumeclaims',
    ])
  })

  it('to settle is one of its own, for each word', () => {
    const op = (settle?: object[]) =>
      ({ metadata: { name: 'op' }, spec: { app: 'orders', action: 'backup', settle } }) as unknown as Op
    const word = { run: 'r', outcome: 'Failed', reason: 'seen' }
    expect(rightsForOperation(op())).toEqual([])
    expect(said(rightsForOperation(op([word]), op()))).toEqual(['settle operations op'])
    expect(rightsForOperation(op([word]), op([word]))).toEqual([])
    expect(said(rightsForOperation(op([word, { ...word, run: 's' }]), op([word])))).toEqual(['settle operations op'])
  })
})
