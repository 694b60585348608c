import { describe, expect, it } from 'vitest'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { validateLifecycle } from '../../../shared/lifecycle/validate.ts'
import { postgres } from './postgres.ts'

const told = (value: unknown, options?: { requireStates: boolean }) =>
  validateLifecycle(value, options).problems.map(
    ({ path, message, severity }) => `${severity === 'warning' ? 'warning: ' : ''}${path.join('.')}: ${message}`,
  )

const exec = { command: ['x'] }
type Action = NonNullable<LifecycleSpec['actions']>[number]
type Probe = NonNullable<LifecycleSpec['probes']>[number]
const ofAction = (more: Partial<Action>) => told({ actions: [{ name: 'a', exec, ...more }] })
const ofProbe = (more: Partial<Probe>) => told({ probes: [{ name: 'p', ...more }] })
const ofStates = (...states: unknown[]) =>
  told({
    states,
    probes: [{ name: 'up', exec }],
    actions: [
      { name: 'a', exec },
      { name: 'b', exec },
    ],
  })

describe('a lifecycle', () => {
  it('as in the design is right, and is given back as it was written', () => {
    expect(validateLifecycle(postgres)).toEqual({ spec: postgres, problems: [] })
    expect(validateLifecycle(postgres).spec).toBe(postgres)
  })

  it('needs states, but the configuration of a sidecar does not', () => {
    expect(told({})).toEqual([])
    expect(told({ states: [] })).toEqual([])
    expect(told({}, { requireStates: true })).toEqual(['states: missing; a lifecycle has at least one state'])
    expect(told({ states: [] }, { requireStates: true })).toHaveLength(1)
  })
})

describe('the shape', () => {
  it.each<[unknown, string]>([
    [null, ': null is not an object'],
    [[], ': [] is not an object'],
    [{ state: [] }, 'state: no such field; did you mean "states"?'],
    [{ states: [{ name: 'a', nxt: [] }] }, 'states.0.nxt: no such field; did you mean "next"?'],
    [
      { actions: [{ name: 'a', http: { uri: 'x', url: 'http://h' } }] },
      'actions.0.http.uri: no such field; did you mean "url"?',
    ],
    [{ states: [{ name: 'a', verb: 'create' }] }, 'states.0.verb: "create" is not accepted; did you mean "Create"?'],
    [{ states: [{}] }, 'states.0.name: missing; it has to be a text'],
    [
      { states: [{ name: '1' }] },
      'states.0.name: "1" is not accepted: a name has letters, digits, "-" and "_", at most 63, and begins with a letter',
    ],
    [{ states: 5 }, 'states: 5 is not a list'],
    [{ preStop: null }, 'preStop: null is not a text'],
    [{ probes: [{ name: 'p', tcp: { port: 70000 } }] }, 'probes.0.tcp.port: 70000 is too large: at most 65535'],
    [{ probes: [{ name: 'p', tcp: { port: '5432' } }] }, 'probes.0.tcp.port: "5432" is not a number'],
    [{ probes: [{ name: 'p', tcp: { port: 1.5 } }] }, 'probes.0.tcp.port: 1.5 is not a whole number'],
    [
      { probes: [{ name: 'p', exec, every: '5' }] },
      'probes.0.every: "5" is not accepted: a duration is written as 200ms, 30s or 1h30m',
    ],
    [{ actions: [{ name: 'a', exec: { command: [] } }] }, 'actions.0.exec.command: [] is too short: at least 1 items'],
    [{ actions: [{ name: 'a', exec: { command: 'sh -c x' } }] }, 'actions.0.exec.command: "sh -c x" is not a list'],
    [
      { actions: [{ name: 'a', exec, env: { '1A': 'x' } }] },
      'actions.0.env.1A: "1A" is not accepted: a variable has letters, digits and "_"',
    ],
    [
      { actions: [{ name: 'a', exec, cancel: { signal: 'SIGTRM' } }] },
      'actions.0.cancel.signal: "SIGTRM" is not accepted; did you mean "SIGTERM"?',
    ],
    [{ actions: [{ name: 'a', exec, retries: Number.NaN }] }, 'actions.0.retries: NaN is no number that JSON has'],
  ])('%j is refused', (value, message) => {
    expect(told(value)).toEqual([message])
    expect(validateLifecycle(value).spec).toBeUndefined()
  })
})

describe('states', () => {
  const start = { name: 'Start', next: ['Up', 'End'] }
  const up = { name: 'Up', when: 'probes.up.ok', next: ['End'] }
  const end = { name: 'End', verb: 'Delete' }

  it('that fit together are right', () => {
    expect(ofStates(start, up, end)).toEqual([])
  })

  it.each<[string, unknown[], string]>([
    [
      'lead to one that is not there',
      [{ ...start, next: ['Upp', 'End', 'Up'] }, up, end],
      'states.0.next.0: "Upp" is no state; did you mean "Up"?',
    ],
    [
      'lead twice to one',
      [{ ...start, next: ['Up', 'End', 'Up'] }, up, end],
      'states.0.next.2: "Up" stands here twice',
    ],
    ['have one name twice', [start, up, end, { ...up }], 'states.3.name: "Up" is the name of states[1] already'],
    [
      'list an action that is not there',
      [start, up, end, { name: 'X', actions: ['c'], when: 'true', next: ['End'] }],
      'states.3.actions.0: "c" is no action; there are a, b',
    ],
    [
      'are called Unknown',
      [start, up, end, { name: 'Unknown', when: 'true', next: ['End'] }],
      'states.3.name: "Unknown" is what a state is called that is not known',
    ],
    [
      'cannot be reached',
      [start, up, end, { name: 'X', actions: ['a'], next: ['Up'] }],
      'states.3: "X" cannot be reached: no `next` leads to it',
    ],
    [
      'lead nowhere',
      [start, { ...up, next: [] }, end],
      'states.1: "Up" leads nowhere: give it `next`, or `verb: Delete` if the app ends there',
    ],
    [
      'lead nowhere, without a word',
      [start, { name: 'Up', when: 'true' }, end],
      'states.1: "Up" leads nowhere: give it `next`, or `verb: Delete` if the app ends there',
    ],
    [
      'are Create twice',
      [start, { ...up, verb: 'Create' }, end],
      'states.1.verb: only one state may be Create, and "Start" is',
    ],
    [
      'are Delete with a guard',
      [start, up, { ...end, when: 'true' }],
      'states.2.when: a Delete state has no `when`: that it is reached is for the controller to say',
    ],
    [
      'begin with Delete',
      [{ ...end, next: ['Up'] }, up],
      'states.0.verb: the first state is where an app begins; it cannot be a Delete state',
    ],
    [
      'have a guard that does not compile',
      [start, { ...up, when: 'probes.upp.ok' }, end],
      'states.1.when: "upp" is no probe; did you mean "up"?',
    ],
  ])('are refused if they %s', (_, states, message) => {
    const errors = ofStates(...states).filter(one => !one.startsWith('warning'))
    expect(errors).toEqual([message])
  })

  it('are refused if two list one action', () => {
    const both = [
      { ...start, next: ['X', 'Y', 'End'] },
      { name: 'X', actions: ['a'], next: ['Start'] },
      { name: 'Y', actions: ['b', 'a'], next: ['Start'] },
      end,
    ]
    expect(ofStates(...both)).toEqual([
      'states.2.actions.1: "a" is listed by "X" already; one state at most may list it',
    ])
  })

  it('are refused if transient ones go round in a circle', () => {
    const circle = [
      { ...start, next: ['X', 'End'] },
      { name: 'X', actions: ['a'], next: ['Y'] },
      { name: 'Y', actions: ['b'], next: ['Start', 'X'] },
      end,
    ]
    expect(ofStates(...circle)).toEqual([
      'states.1.next: transient states in a circle, in which nothing is ever observed: X → Y → X',
    ])
    expect(ofStates({ ...start, next: ['X', 'End'] }, { name: 'X', actions: ['a'], next: ['X'] }, end)).toEqual([
      'states.1.next: transient states in a circle, in which nothing is ever observed: X → X',
    ])
  })

  it('may be Create other than the first, if the first is not', () => {
    expect(ofStates({ ...start, verb: 'Update' }, { ...up, verb: 'Create' }, end)).toEqual([])
  })

  it('may be entered by observation alone', () => {
    expect(ofStates(start, up, { name: 'Healing', when: 'probes.up.ok', next: ['Up', 'End'] }, end)).toEqual([])
  })

  it('are warned of if they cannot be ended without waiting for a guard', () => {
    const waiting = { name: 'Starting', when: 'true', next: ['Up'] }
    expect(ofStates(start, up, waiting, end)).toEqual([
      'warning: states.2.next: from "Starting" no Delete state can be reached without waiting for a guard',
    ])
    const guessed = [{ ...start, next: ['Stopping'] }, { name: 'Stopping', actions: ['a', 'b'], next: ['End'] }, end]
    expect(ofStates(...guessed)).toEqual([
      'warning: states.0.next: from "Start" no Delete state can be reached without waiting for a guard',
    ])
  })

  it('are warned of if there is no end, or what is written has no effect', () => {
    expect(ofStates({ ...start, next: ['Up'] }, { ...up, next: ['Start'] })).toEqual([
      'warning: states: no state has `verb: Delete`, so the app cannot be ended',
    ])
    expect(ofStates(start, up, { ...end, actions: ['a'] })).toEqual([
      'warning: states.2.actions: never asked for: what is done before the end belongs into a state before it',
    ])
    expect(ofStates(start, { name: 'Up', next: ['End'] }, end)).toEqual([
      'warning: states.1: "Up" can never be observed: give it `when` or `actions`',
    ])
  })
})

describe('a probe', () => {
  it.each<[Partial<Probe>]>([
    [{ exec }],
    [{ http: { url: 'http://127.0.0.1:8080/health?x=1', status: [200, 404] } }],
    [{ tcp: { port: 5432 } }],
    [{ file: { path: '/x', pattern: '^(a)' } }],
    [{ exec, every: '1s', timeout: '5s' }],
  ])('%j is right', probe => {
    expect(ofProbe(probe)).toEqual([])
  })

  it.each<[Partial<Probe>, string]>([
    [{}, 'probes.0: needs one of exec, http, tcp, file, process'],
    [{ exec, tcp: { port: 1 } }, 'probes.0.tcp: exec and tcp together: one of them is wanted'],
    [{ http: { url: 'ftp://h/' } }, 'probes.0.http.url: "ftp://h/" does not begin with http:// or https://'],
    [{ http: { url: 'http://' } }, 'probes.0.http.url: "http://" is no URL'],
    [
      { http: { url: 'http://u:p@h/' } },
      'probes.0.http.url: a URL with a password in it ends up in logs: send a header',
    ],
    [
      { http: { url: 'http://h/', headers: { 'a b': 'x' } } },
      'probes.0.http.headers.a b: "a b" is no name of a header',
    ],
    [
      { http: { url: 'http://h/', headers: { a: 'x\ny' } } },
      'probes.0.http.headers.a: "x\\ny" has what no header can hold',
    ],
    [
      { http: { url: 'http://h/', body: 'x' } },
      'probes.0.http.body: a GET has no body: give it a `method` such as POST',
    ],
    [
      { exec: { command: ['x', '$(params.y)'] } },
      'probes.0.exec.command.1: $(params.y) is not declared; there are none',
    ],
    [{ exec: { command: [''] } }, 'probes.0.exec.command.0: the program has no name'],
    [{ exec: { command: ['x', 'a\0b'] } }, 'probes.0.exec.command.1: no argument can hold a NUL'],
    [{ file: { path: '/x', pattern: '(' } }, 'probes.0.file.pattern: "(" is no regular expression: Unterminated group'],
    [{ exec, every: '0s' }, 'probes.0.every: "0s" is too short: at least 100ms'],
    [{ exec, timeout: '0s' }, 'probes.0.timeout: "0s" is too short: at least 1ms'],
    [{ exec, every: '99999999999999h' }, 'probes.0.every: "99999999999999h" is longer than can be counted'],
    [
      { exec, env: { SHIPMATE_X: '1' } },
      'probes.0.env.SHIPMATE_X: variables that begin with SHIPMATE_ are set by the agent',
    ],
    [{ process: { name: 'x' } }, 'warning: probes.0.process: needs a pod with `shareProcessNamespace: true`'],
  ])('%j is told of', (probe, message) => {
    expect(ofProbe(probe)).toEqual([message])
  })

  it('may not have the name of another', () => {
    expect(
      told({
        probes: [
          { name: 'p', exec },
          { name: 'p', exec },
        ],
      }),
    ).toEqual(['probes.1.name: "p" is the name of probes[0] already'])
  })
})

describe('an action', () => {
  const to = { to: { type: 'string' } }
  const secret = { password: { type: 'string', writeOnly: true } }
  const optional = { label: { type: 'string', required: false } }
  const http = (more: object) => ({ exec: undefined, http: { url: 'http://h/', ...more } }) as Partial<Action>
  const only = (more: object) => told({ actions: [{ name: 'a', ...more }] })

  it.each<[object]>([
    [{ exec: { command: ['x', '$(params.to)', '$$(params.nothing)', '$(date)'] }, params: to }],
    [
      {
        http: {
          url: 'http://h/$(params.to)',
          method: 'POST',
          body: '{"p": "$(params.password)"}',
          headers: { a: '$(params.password)' },
        },
        params: { ...to, ...secret },
      },
    ],
    [
      {
        http: {
          url: 'http://h/',
          method: 'POST',
          poll: { until: 'body.state == "done"', failed: 'status >= 500', every: '1s' },
        },
      },
    ],
    [{ exec, params: secret, secretEnv: { PGPASSWORD: 'password' } }],
    [
      {
        steps: [{ exec }, { fileChanged: { path: '/x', sha256: '$(params.to)' } }, { http: { url: 'https://h/' } }],
        params: to,
      },
    ],
    [{ reload: { file: { path: '/x' }, http: { url: 'http://h/', method: 'POST' } } }],
    [{ exec, verify: { http: { url: 'http://h/$(params.to)', absent: [404, 410] } }, params: to }],
    [{ exec, limits: { output: '64Ki', nice: 5 } }],
  ])('%j is right', action => {
    expect(only(action)).toEqual([])
  })

  it.each<[object, string]>([
    [{}, 'actions.0: needs one of exec, http, signal, steps, reload'],
    [{ exec, http: { url: 'http://h/' } }, 'actions.0.http: exec and http together: one of them is wanted'],
    [{ steps: [{}] }, 'actions.0.steps.0: needs one of exec, http, signal, fileChanged'],
    [{ reload: { file: { path: '/x' } } }, 'actions.0.reload: needs one of exec, http, signal'],
    [{ exec, verify: {} }, 'actions.0.verify: needs one of exec, http'],
    [
      { exec: { command: ['x', '$(params.too)'] }, params: to },
      'actions.0.exec.command.1: $(params.too) is not declared; did you mean "to"?',
    ],
    [
      { exec: { command: ['x', '$(param.to)'] }, params: to },
      'actions.0.exec.command.1: "$(param.to)" is replaced by nothing: write $(params.NAME), or $$( for a literal $(',
    ],
    [
      { exec: { command: ['x', '$(params.password)'] }, params: secret },
      'actions.0.exec.command.1: password is secret, and an argument can be seen by others: read the file that SHIPMATE_PARAM_FILE_PASSWORD names, or use secretEnv',
    ],
    [
      { http: { url: 'http://h/$(params.password)' }, params: secret },
      'actions.0.http.url: password is secret, and a URL can be seen by others: send it in a header or in the body',
    ],
    [
      { exec: { command: ['x', '$(params.label)'] }, params: optional },
      'actions.0.exec.command.1: label may be absent, and then an argument cannot be made: give it a default',
    ],
    [
      { http: { url: 'http://h/$(params.label)' }, params: optional },
      'actions.0.http.url: label may be absent, and then a URL cannot be made: give it a default',
    ],
    [
      { exec, verify: { exec: { command: ['v', '$(params.no)'] } } },
      'actions.0.verify.exec.command.1: $(params.no) is not declared; there are none',
    ],
    [
      { steps: [{ exec: { command: ['v', '$(params.no)'] } }] },
      'actions.0.steps.0.exec.command.1: $(params.no) is not declared; there are none',
    ],
    [
      { exec, params: { 'a-b': {}, a_b: {} } },
      'actions.0.params.a_b: a_b and a-b would both be the variable SHIPMATE_PARAM_A_B',
    ],
    [
      { exec, params: { file_x: {}, x: { writeOnly: true } } },
      'actions.0.params.x: x and file_x would both be the variable SHIPMATE_PARAM_FILE_X',
    ],
    [
      { exec, params: { p: { type: 'text' } } },
      'actions.0.params.p.type: "text" is no type; there are string, number, integer, boolean, array, object, null',
    ],
    [
      { exec, params: { p: { type: 'integer', default: 'x' } } },
      'actions.0.params.p.default: params.p is "x", but has to be of type integer',
    ],
    [
      { exec, params: { p: { writeOnly: true, default: 'x' } } },
      'actions.0.params.p.default: a secret cannot have a default: it would stand here for all to read',
    ],
    [
      { exec, params: { p: { required: true, default: 'x' } } },
      'actions.0.params.p.required: a parameter that must be given has no use for a default',
    ],
    [
      { exec, params: to, secretEnv: { X: 'to' } },
      'actions.0.secretEnv.X: "to" is not secret: declare it `writeOnly: true`',
    ],
    [
      { exec, params: secret, secretEnv: { X: 'pasword' } },
      'actions.0.secretEnv.X: "pasword" is no secret parameter; did you mean "password"?',
    ],
    [
      { exec, params: secret, secretEnv: { X: 'password' }, env: { X: '1' } },
      'actions.0.secretEnv.X: X stands in env as well',
    ],
    [
      { exec, params: secret, secretEnv: { SHIPMATE_X: 'password' } },
      'actions.0.secretEnv.SHIPMATE_X: variables that begin with SHIPMATE_ are set by the agent',
    ],
    [
      { exec, env: { SHIPMATE_RUN_ID: '1' } },
      'actions.0.env.SHIPMATE_RUN_ID: variables that begin with SHIPMATE_ are set by the agent',
    ],
    [
      { exec, progress: { pattern: '[' } },
      'actions.0.progress.pattern: "[" is no regular expression: Unterminated character class',
    ],
    [
      { exec, progress: { pattern: '\\d+%' } },
      'actions.0.progress.pattern: "\\\\d+%" has no group ( ) around the percentage',
    ],
    [{ exec, timeout: '0s' }, 'actions.0.timeout: "0s" is too short: at least 1ms'],
    [{ exec, limits: { output: '6Mi' } }, 'actions.0.limits.output: "6Mi" is too much: at most 5Mi'],
    [
      { exec, result: { file: '/x', lastLine: true } },
      'actions.0.result: the result is either in a `file` or in the `lastLine`',
    ],
    [
      { exec, result: { file: '/x/$(params.none)' } },
      'actions.0.result.file: $(params.none) is not declared; there are none',
    ],
    [
      { reload: { file: { path: '/x', sha256: 'abc' }, exec } },
      'actions.0.reload.file.sha256: "abc" is no SHA-256: 64 hex digits, or $(params.NAME)',
    ],
    [
      http({ poll: { until: 'done' } }),
      'actions.0.http.poll.until: "done" does not fit together: Unknown variable: done, at character 1',
    ],
    [http({ poll: { until: 'true', failed: '1' } }), 'actions.0.http.poll.failed: "1" gives int, not true or false'],
    [
      http({ poll: { until: 'true', url: 'h' } }),
      'actions.0.http.poll.url: "h" does not begin with http:// or https://',
    ],
    [http({ poll: { until: 'true', every: '1ms' } }), 'actions.0.http.poll.every: "1ms" is too short: at least 100ms'],
    [
      { signal: { process: 'x', signal: 'SIGHUP' } },
      'warning: actions.0.signal: needs a pod with `shareProcessNamespace: true`',
    ],
    [
      { exec, params: to, workingDir: '/x/$(params.to)' },
      'warning: actions.0.workingDir: $(params.to) is not replaced here',
    ],
    [{ exec, params: to, env: { A: '$(params.to)' } }, 'warning: actions.0.env.A: $(params.to) is not replaced here'],
    [
      { http: { url: 'http://$(params.to)/' }, params: to },
      'warning: actions.0.http.url: who gives the parameter chooses which server is called',
    ],
  ])('%j is told of', (action, message) => {
    expect(only(JSON.parse(JSON.stringify(action)))).toEqual([message])
  })

  it('may not have the name of another', () => {
    expect(
      told({
        actions: [
          { name: 'a', exec },
          { name: 'a', exec },
        ],
      }),
    ).toEqual(['actions.1.name: "a" is the name of actions[0] already'])
  })

  it('is that of preStop only if it is there and needs nothing', () => {
    expect(told({ preStop: 'a', actions: [{ name: 'a', exec, params: optional }] })).toEqual([])
    expect(told({ preStop: 'stpo', actions: [{ name: 'stop', exec }] })).toEqual([
      'preStop: "stpo" is no action; did you mean "stop"?',
    ])
    expect(told({ preStop: 'a', actions: [{ name: 'a', exec, params: to }] })).toEqual([
      'preStop: "a" needs to, and nobody is there to give it: let it have a default',
    ])
  })

  it('tells all that is wrong at once', () => {
    expect(ofAction({ timeout: '0s', progress: { pattern: 'x' }, secretEnv: { A: 'b' } })).toHaveLength(3)
  })
})
