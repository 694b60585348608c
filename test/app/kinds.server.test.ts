/**
 * Shipmate's own kinds on the server that has the last word: what it fills in, what it refuses and in which words, what kubectl prints.
 */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { Lifecycle, Operation, OperationSchedule, StatefulApp } from '../../controller/app/kinds.ts'
import { type Access, connect } from '../../controller/kube/access.ts'
import type { Client } from '../../controller/kube/client.ts'
import { Invalid } from '../../controller/kube/errors.ts'
import type { Kind } from '../../controller/kube/kind.ts'
import { CustomResourceDefinition, Namespace } from '../../controller/kube/kinds.ts'
import { kubectl, kubectlMissing, needsKubectl } from '../fixtures/kubectl.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'
import { postgres } from '../shared/lifecycle/postgres.ts'

const file = inject('kubeconfig')
const namespace = 'own-kinds'
const strict = { fieldValidation: 'Strict' } as const

const app = { lifecycle: 'postgres', workload: { kind: 'StatefulSet', name: 'db' } }
const operation = { app: 'db', action: 'backup', params: { to: '/backup/1', list: [{ a: 1 }] } }
const schedule = { schedule: '0 3 * * *', template: { app: 'db', action: 'backup' } }
const run = { run: 'r1', outcome: 'Succeeded', reason: 'the backup is there' }

describe.skipIf(!file)("Shipmate's own kinds", () => {
  let access: Access
  let client: Client
  let serial = 0

  beforeAll(async () => {
    access = connect({ kubeconfig: { file } })
    client = access.client
    await client.create(Namespace, { metadata: { name: namespace } })
    await installOwnKinds(client)
  })
  afterAll(() => access.close())

  const create = <T extends object>(kind: Kind<T>, spec: object, name = `x${++serial}`) =>
    client.create(
      kind,
      { metadata: { name, namespace }, spec } as unknown as Parameters<typeof client.create<T>>[1],
      strict,
    )
  const refused = async (made: Promise<unknown>): Promise<string> => {
    const error = await made.catch((error: unknown) => error)
    expect(error).toBeInstanceOf(Invalid)
    return (error as Invalid).message
  }

  test.each([Lifecycle, StatefulApp, Operation, OperationSchedule].map(kind => [kind.kind, kind] as const))(
    'the CRD of %s is taken whole',
    async (_, kind) => {
      const ours = kind.crd()
      const found = await client.get(CustomResourceDefinition, { name: ours.metadata.name })
      expect(found.spec.versions).toEqual(ours.spec.versions)
      expect(found.status?.conditions?.filter(({ type }) => type === 'NonStructuralSchema')).toEqual([])
    },
  )

  describe('what is left out is filled in', () => {
    test('StatefulApp', async () => {
      const { spec } = await create(StatefulApp, app)
      expect(spec).toEqual({
        ...app,
        workload: { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db' },
        deletion: { deadline: '10m' },
        paused: false,
      })
    })

    test('Operation, its parameters as they were written', async () => {
      const { spec } = await create(Operation, operation)
      expect(spec).toEqual({
        ...operation,
        priority: 0,
        ttlSecondsAfterFinished: 86_400,
        suspend: false,
        cancel: false,
      })
    })

    test('OperationSchedule', async () => {
      const { spec } = await create(OperationSchedule, schedule)
      expect(spec).toEqual({
        ...schedule,
        template: { ...schedule.template, priority: 0, suspend: false, ttlSecondsAfterFinished: 86_400 },
        ...{ timeZone: 'Etc/UTC', jitter: '0s', catchUp: 1, overlap: 'Forbid', suspend: false },
        ...{ successfulHistory: 3, failedHistory: 1 },
      })
    })

    test('Lifecycle', async () => {
      const { spec } = await create(Lifecycle, {
        states: [
          { name: 'Start', next: ['End'] },
          { name: 'End', verb: 'Delete' },
        ],
        probes: [{ name: 'p', tcp: { port: 80 } }],
        actions: [{ name: 'a', exec: { command: ['true'] } }],
      })
      expect(spec.probes?.[0]).toEqual({
        ...{ name: 'p', tcp: { port: 80 }, every: '10s', timeout: '1s', successThreshold: 1, failureThreshold: 3 },
      })
      expect(spec.actions?.[0]).toEqual({
        ...{ name: 'a', exec: { command: ['true'] }, timeout: '1h', cancel: { signal: 'SIGTERM', grace: '30s' } },
        ...{ target: 'all', order: 'serial', retries: 0, idempotent: false, shared: false, duringRollout: false },
      })
    })
  })

  test('a template may be any StatefulSet', async () => {
    const spec = { replicas: 3, template: { spec: { containers: [{ name: 'a', image: 'b' }] } } }
    const made = await create(StatefulApp, { lifecycle: 'postgres', template: { spec, configMaps: { c: { k: 'v' } } } })
    expect(made.spec.template).toEqual({ spec, configMaps: { c: { k: 'v' } } })
  })

  describe('is refused', () => {
    const { workload: _none, ...bare } = app
    const state = (more: object) => ({
      states: [{ name: 'Start', next: ['End'] }, { name: 'End', verb: 'Delete' }, more],
    })
    const action = (more: object) => ({
      ...{ states: postgres.states, preStop: postgres.preStop, probes: postgres.probes },
      actions: [...postgres.actions, { name: 'more', ...more }],
    })
    test.each<[string, Kind, object, string]>([
      ['neither workload nor template', StatefulApp, bare, 'exactly one of workload and template has to be given'],
      [
        'both workload and template',
        StatefulApp,
        { ...app, template: { spec: {} } },
        'exactly one of workload and template has to be given',
      ],
      ['a quorum of none', StatefulApp, { ...app, quorum: 0 }, 'should be greater than or equal to 1'],
      ['a duration in words', StatefulApp, { ...app, deletion: { deadline: 'soon' } }, 'spec.deletion.deadline'],
      [
        'an end that is none',
        StatefulApp,
        { ...app, onEnd: 'Explode' },
        '"Orphan", "ScaleToZero", "Delete", "DeleteWithVolumes"',
      ],
      ['via nothing', StatefulApp, { ...app, via: {} }, 'exactly one of exec and http has to be given'],
      [
        'a wish without a state',
        StatefulApp,
        { ...app, desired: { action: 'backup' } },
        'spec.desired.state: Required value',
      ],
      ['an Operation on nothing', Operation, { action: 'backup' }, 'spec.app: Required value'],
      [
        'a parameter from two Secrets',
        Operation,
        { ...operation, paramsFrom: ['a', 'b'].map(name => ({ name: 'p', secretKeyRef: { name, key: 'k' } })) },
        'Duplicate value',
      ],
      ['half a schedule', OperationSchedule, { ...schedule, schedule: '0 3 *' }, 'spec.schedule'],
      ['an overlap that is none', OperationSchedule, { ...schedule, overlap: 'Maybe' }, '"Allow", "Forbid", "Replace"'],
      ['a lifecycle without states', Lifecycle, {}, 'a lifecycle has at least one state'],
      [
        'a next that does not exist',
        Lifecycle,
        state({ name: 'A', when: 'true', next: ['B'] }),
        '`next` names a state that does not exist',
      ],
      [
        'an action that does not exist',
        Lifecycle,
        state({ name: 'A', actions: ['a'], next: ['End'] }),
        'a state lists an action that does not exist',
      ],
      [
        'a preStop that does not exist',
        Lifecycle,
        { ...state({ name: 'A', when: 'true', next: ['End'] }), preStop: 'stop' },
        'preStop names an action that does not exist',
      ],
      ['two states of one name', Lifecycle, state({ name: 'End', verb: 'Delete' }), 'Duplicate value'],
      [
        'a state called Unknown',
        Lifecycle,
        state({ name: 'Unknown', when: 'true', next: ['End'] }),
        'Unknown is what a state is called that is not known',
      ],
      [
        'a Delete state with a guard',
        Lifecycle,
        state({ name: 'A', verb: 'Delete', when: 'true' }),
        'a Delete state has no `when`',
      ],
      [
        'a state that leads nowhere',
        Lifecycle,
        state({ name: 'A', when: 'true' }),
        'a state without `next` is the end of the app',
      ],
      [
        'an action that does nothing',
        Lifecycle,
        action({}),
        'exactly one of exec, http, signal, steps, reload has to be given',
      ],
      [
        'an action that does two things',
        Lifecycle,
        action({ exec: { command: ['a'] }, steps: [{ exec: { command: ['a'] } }] }),
        'exactly one of exec, http, signal, steps, reload has to be given',
      ],
      [
        'a step that does nothing',
        Lifecycle,
        action({ steps: [{}] }),
        'exactly one of exec, http, signal, fileChanged has to be given',
      ],
      [
        'a probe that asks nothing',
        Lifecycle,
        { ...state({ name: 'A', when: 'true', next: ['End'] }), probes: [{ name: 'p' }] },
        'exactly one of exec, http, tcp, file, process has to be given',
      ],
    ])('%s', async (_, kind, spec, words) => {
      expect(await refused(create(kind, spec))).toContain(words)
    })

    test.each<[Kind, object, number]>([
      [StatefulApp, app, 40],
      [Operation, operation, 63],
      [OperationSchedule, schedule, 52],
    ])('a name of $kind that is too long, or no DNS label', async (kind, spec, longest) => {
      await create(kind, spec, 'a'.repeat(longest))
      expect(await refused(create(kind, spec, 'a'.repeat(longest + 1)))).toContain(`has at most ${longest} characters`)
      expect(await refused(create(kind, spec, 'a.b'))).toContain('is a DNS label')
    })

    test('a name that no Service can have, where there is to be one', async () => {
      const spec = { lifecycle: 'postgres', template: { spec: {} } }
      expect(await refused(create(StatefulApp, spec, '1-a'))).toContain('begins with a letter')
      await create(StatefulApp, app, '1-a')
    })

    test('a field that is not known, where the server is asked to be strict', async () => {
      await expect(create(StatefulApp, { ...app, desierd: { state: 'Running' } })).rejects.toThrow(
        'unknown field "spec.desierd"',
      )
    })
  })

  describe('once it is there', () => {
    const change = (kind: Kind, before: object, after: object) => async () => {
      const name = `x${++serial}`
      await create(kind, before, name)
      return client.patch(kind, { name, namespace }, { merge: { spec: after } })
    }
    const settled = { ...operation, settle: [run] }
    test.each<[string, Kind, object, object, string]>([
      [
        "an app's workload",
        StatefulApp,
        app,
        { workload: { name: 'other' } },
        'the workload of an app cannot be changed',
      ],
      [
        'whether an app has a workload or a template',
        StatefulApp,
        app,
        { workload: null, template: { spec: {} } },
        'an app with a workload cannot become one with a template',
      ],
      ["an Operation's app", Operation, operation, { app: 'other' }, 'app of an Operation cannot be changed'],
      ["an Operation's action", Operation, operation, { action: 'other' }, 'action of an Operation cannot be changed'],
      [
        "an Operation's parameters",
        Operation,
        operation,
        { params: { list: [{ a: 2 }] } },
        'params of an Operation cannot be changed',
      ],
      [
        'that an Operation has parameters',
        Operation,
        operation,
        { params: null },
        'params of an Operation cannot be changed',
      ],
      [
        "an Operation's secrets",
        Operation,
        operation,
        { paramsFrom: [{ name: 'p', secretKeyRef: { name: 's', key: 'k' } }] },
        'paramsFrom of an Operation cannot be changed',
      ],
      ["an Operation's target", Operation, operation, { target: 'one' }, 'target of an Operation cannot be changed'],
      [
        'a cancellation',
        Operation,
        { ...operation, cancel: true },
        { cancel: false },
        'a cancellation cannot be taken back',
      ],
      [
        "a person's word",
        Operation,
        settled,
        { settle: [{ ...run, outcome: 'Failed' }] },
        'what was said of a run stands: it cannot be changed',
      ],
      [
        "that a person's word was given",
        Operation,
        settled,
        { settle: [] },
        'what was said of a run stands: it cannot be removed',
      ],
      [
        "that there are a person's words",
        Operation,
        settled,
        { settle: null },
        'what was said of a run stands: it cannot be removed',
      ],
    ])('%s cannot be changed', async (_, kind, before, after, words) => {
      expect(await refused(change(kind, before, after)())).toContain(words)
    })

    test.each<[string, Kind, object, object]>([
      ["an app's lifecycle and wish", StatefulApp, app, { lifecycle: 'other', desired: { state: 'Running' } }],
      [
        "an app's template",
        StatefulApp,
        { lifecycle: 'l', template: { spec: { replicas: 1 } } },
        { template: { spec: { replicas: 2 } } },
      ],
      [
        'whether an Operation waits, and for how long',
        Operation,
        operation,
        { suspend: true, cancel: true, deadline: '1h' },
      ],
      ["another person's word", Operation, settled, { settle: [run, { ...run, run: 'r2' }] }],
      ["a schedule's template", OperationSchedule, schedule, { template: { action: 'reload' } }],
    ])('%s can be changed', async (_, kind, before, after) => {
      await change(kind, before, after)()
    })
  })

  describe.skipIf(kubectlMissing)(`to a person${needsKubectl}`, () => {
    const ask = (...args: string[]) => kubectl(file, '-n', namespace, ...args)

    test('kubectl get prints what the app is doing', async () => {
      const made = await create(StatefulApp, app, 'orders-db')
      const at = '2026-11-16T14:02:00Z'
      const status = {
        state: 'Servicing',
        desired: 'Servicing (backup)',
        action: 'backup 41 %',
        waitingFor: 'orders-db-1 to finish backup, since 14:02, until 16:02',
        conditions: [{ type: 'Ready', status: 'False', reason: 'Servicing', message: '', lastTransitionTime: at }],
      }
      const { name } = made.metadata
      await client.patch(StatefulApp, { name, namespace }, { merge: { status } }, { subresource: 'status' })
      const [head = '', row = ''] = (await ask('get', 'sapp', 'orders-db')).split('\n')
      expect(head.trim().split(/\s{2,}/)).toEqual(['NAME', 'DESIRED', 'STATE', 'ACTION', 'READY', 'WAITING FOR', 'AGE'])
      expect(
        row
          .trim()
          .split(/\s{2,}/)
          .slice(0, 6),
      ).toEqual([
        ...['orders-db', 'Servicing (backup)', 'Servicing', 'backup 41 %', 'False'],
        'orders-db-1 to finish backup, since 14:02, until 16:02',
      ])
    })

    test.each([
      ['op', ['NAME', 'APP', 'ACTION', 'PHASE', 'PROGRESS', 'REASON', 'AGE']],
      ['opsched', ['NAME', 'APP', 'ACTION', 'SCHEDULE', 'TIME ZONE', 'SUSPEND', 'LAST TICK', 'NEXT TICK', 'AGE']],
      ['lc', ['NAME', 'APPS', 'READY', 'AGE']],
    ])('kubectl get %s has its columns', async (short, columns) => {
      const [head = ''] = (await ask('get', short)).split('\n')
      expect(head.trim().split(/\s{2,}/)).toEqual(columns)
    })

    test.each([
      ['sapp.spec.desired.request', 'Another one makes it another wish'],
      ['op.status.runs.fence', 'plus its place in this list'],
      ['opsched.spec.catchUp', 'the newest ones'],
      ['lifecycle.spec.actions.duringRollout', 'while the workload is being rolled out'],
    ])('kubectl explain %s says what it is', async (path, words) => {
      expect((await ask('explain', path)).replaceAll(/\s+/g, ' ')).toContain(words)
    })
  })
})
