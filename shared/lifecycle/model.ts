/**
 * The shape of a lifecycle: its states, probes and actions, as in a Lifecycle's `spec` and in the sidecar's configuration. One definition
 * gives the types, the validation and, in the controller, the CRD.
 *
 * Guarantee: what `lifecycleSpec` accepts has the right shape; that its names fit together is for validate.ts. Nothing is filled in here: defaults
 * stand in `defaults`, so that a configuration's hash is that of what was written.
 */
import * as z from 'zod/mini'
import { byName, count, described, duration, name, named, oneOf, paramName, text, variable } from './fields.ts'

/** What is in force where nothing is written. */
export const defaults = {
  probe: { every: '10s', timeout: '1s', successThreshold: 1, failureThreshold: 3, initialDelay: '0s' },
  action: {
    timeout: '1h',
    target: 'all',
    order: 'serial',
    retries: 0,
    idempotent: false,
    shared: false,
    duringRollout: false,
  },
  cancel: { signal: 'SIGTERM', grace: '30s' },
  verify: { timeout: '30s', absent: [404] },
  http: { method: 'GET', timeout: '10s' },
  poll: { every: '2s' },
  limits: { nice: 0, output: '5Mi' },
} as const

/** The signals that an action or a cancel may send. */
const signals = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGTERM',
  'SIGKILL',
  'SIGCONT',
  'SIGSTOP',
  'SIGWINCH',
] as const
const signalName = z.enum(signals)

const command = described(
  z.array(z.string().check(z.maxLength(32_768))).check(z.minLength(1), z.maxLength(256)),
  'The program and its arguments. Never a shell: $(params.NAME) is replaced inside one argument.',
)
const exec = z.strictObject({ command })
const status = described(
  z.array(count(100, 599)).check(z.minLength(1)),
  'The status codes that mean yes. Default: 200 to 299.',
)
const request = {
  url: described(text(4096), 'http:// or https://; $(params.NAME) is replaced, percent-encoded.'),
  method: z.optional(z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])),
  headers: z.optional(named(z.record(text(256), z.string().check(z.maxLength(8192))))),
  body: described(
    z.optional(z.string().check(z.maxLength(262_144))),
    'Sent as it is, $(params.NAME) replaced; inside a JSON string it is escaped for it.',
  ),
  status: z.optional(status),
  timeout: described(z.optional(duration), 'For one answer. Default 10s.'),
  insecureSkipVerify: described(z.optional(z.boolean()), 'Accept any certificate of an https server. Default false.'),
}
const signal = z.strictObject({
  process: described(
    text(256),
    "The process's name: of its program, or of its first argument's last part. Needs a shared process namespace.",
  ),
  signal: signalName,
})

/** `probes[]`: something that is observed, again and again. */
export const probe = z.strictObject({
  name,
  exec: described(z.optional(exec), 'Exit 0 is yes, any other exit is no.'),
  http: described(z.optional(z.strictObject(request)), 'One of `status` is yes, any other answer is no.'),
  tcp: described(
    z.optional(z.strictObject({ host: z.optional(text(253)), port: count(1, 65535) })),
    'A connection is yes, a refusal is no. Host: 127.0.0.1.',
  ),
  file: described(
    z.optional(
      z.strictObject({
        path: text(4096),
        exists: described(z.optional(z.boolean()), 'Whether it is to exist. Default true.'),
        pattern: described(
          z.optional(text(1024)),
          'A regular expression that its content is to match; the first group, or the match, is the value.',
        ),
        changed: described(
          z.optional(z.boolean()),
          'Whether its content is to differ from what the agent found when it started. The value is its SHA-256.',
        ),
      }),
    ),
    'A file in the container.',
  ),
  process: described(
    z.optional(z.strictObject({ name: text(256) })),
    'Whether such a process runs. Needs a shared process namespace. The value is its pid.',
  ),
  env: z.optional(named(z.record(variable, z.string()))),
  workingDir: z.optional(text(4096)),
  user: z.optional(z.strictObject({ uid: count(0, 2 ** 31), gid: z.optional(count(0, 2 ** 31)) })),
  every: described(z.optional(duration), 'From the start of one to the start of the next. Default 10s.', {
    default: defaults.probe.every,
  }),
  timeout: described(z.optional(duration), 'No answer by then is no answer; it is not a no. Default 1s.', {
    default: defaults.probe.timeout,
  }),
  successThreshold: described(z.optional(count(1, 100)), 'So many yes in a row make it ok. Default 1.', {
    default: defaults.probe.successThreshold,
  }),
  failureThreshold: described(z.optional(count(1, 100)), 'So many failures in a row make it not ok. Default 3.', {
    default: defaults.probe.failureThreshold,
  }),
  initialDelay: described(z.optional(duration), 'Waited before the first one. Default 0s.'),
})

described(probe, undefined, oneOf(['exec', 'http', 'tcp', 'file', 'process']))

const poll = z.strictObject({
  url: described(
    z.optional(text(4096)),
    'Where to ask. Default: the Location that the answer named, else the same URL.',
  ),
  every: z.optional(duration),
  until: described(
    text(4096),
    'CEL over status (int), headers (map) and body (parsed, if it is JSON): done when it holds.',
  ),
  failed: described(z.optional(text(4096)), 'CEL over the same: failed when it holds.'),
})
const http = z.strictObject({ ...request, poll: z.optional(poll) })
const fileChanged = z.strictObject({
  path: text(4096),
  sha256: described(
    z.optional(text(128)),
    'The hash it is to have; $(params.NAME) is replaced. Default: any other than at the last reload, or than when it was first seen.',
  ),
})
const call = { exec: z.optional(exec), http: z.optional(http), signal: z.optional(signal) }

/** One of an action's `steps`: exactly one of its members. */
export const step = z.strictObject({
  ...call,
  fileChanged: described(z.optional(fileChanged), 'Waits until the content of a mounted file has changed.'),
})

described(step, undefined, oneOf(['exec', 'http', 'signal', 'fileChanged']))

/** `params.NAME`: a JSON schema, and whether it must be given. */
export const paramSchema = z.record(z.string(), z.unknown())

/** `actions[]`: something that can be asked of a pod. */
export const action = z.strictObject({
  name,
  description: z.optional(text(1024)),
  ...call,
  steps: described(
    z.optional(z.array(step).check(z.minLength(1), z.maxLength(64))),
    'Carried out one after the other; the first that fails ends it.',
  ),
  reload: described(
    z.optional(z.strictObject({ file: fileChanged, ...call })),
    'Waits until the mounted file has really changed, then calls or signals the application, then verifies.',
  ),
  params: described(
    z.optional(named(z.record(paramName, paramSchema))),
    'A JSON schema for each parameter. Required unless it has a `default` or says `required: false`; secret if `writeOnly: true`.',
  ),
  target: described(z.optional(text(253)), 'all | one | primary | replicas | the name of a pod. Default all.', {
    default: defaults.action.target,
  }),
  order: described(
    z.optional(z.enum(['parallel', 'serial', 'primaryLast'])),
    'Whether its targets are asked at once or one after the other. Default serial.',
    { default: defaults.action.order },
  ),
  timeout: described(z.optional(duration), 'From Running on. Default 1h.', { default: defaults.action.timeout }),
  cancel: described(
    z.optional(
      z.strictObject({
        signal: described(z.optional(signalName), 'Sent first. Default SIGTERM.', { default: defaults.cancel.signal }),
        grace: described(z.optional(duration), 'SIGKILL so much later. Default 30s.', {
          default: defaults.cancel.grace,
        }),
      }),
    ),
    'How it is ended before its time: SIGTERM, and SIGKILL 30s later, unless written otherwise.',
    { default: {} },
  ),
  verify: described(
    z.optional(
      z.strictObject({
        exec: z.optional(exec),
        http: z.optional(
          z.strictObject({
            ...request,
            absent: described(
              z.optional(z.array(count(100, 599))),
              'The status codes that mean: it did not happen. Default 404.',
            ),
          }),
        ),
        timeout: z.optional(duration),
      }),
    ),
    'Tells whether it happened: exit 0, it did; exit 1, it did not; anything else, not known.',
  ),
  idempotent: described(
    z.optional(z.boolean()),
    'Whether it may be done twice: then an outcome that nobody saw is settled by another attempt. Default false.',
    { default: defaults.action.idempotent },
  ),
  retries: described(z.optional(count(0, 100)), 'So many more attempts after one that Failed. Default 0.', {
    default: defaults.action.retries,
  }),
  duringRollout: described(
    z.optional(z.boolean()),
    'Whether it is begun while the workload is being rolled out. Default false: it waits.',
    { default: defaults.action.duringRollout },
  ),
  shared: described(z.optional(z.boolean()), 'May run beside other shared ones. Default false.', {
    default: defaults.action.shared,
  }),
  progress: z.optional(
    z.strictObject({
      pattern: described(
        text(1024),
        'A regular expression over each line of output; the first group is the percentage.',
      ),
    }),
  ),
  result: described(
    z.optional(z.strictObject({ file: z.optional(text(4096)), lastLine: z.optional(z.boolean()) })),
    'Where the result is: in a file, or the last line of standard output. Default: the last {"result": …} on standard output.',
  ),
  env: z.optional(named(z.record(variable, z.string()))),
  secretEnv: described(
    z.optional(named(z.record(variable, paramName))),
    'Variables that hold secret parameters: {PGPASSWORD: password}.',
  ),
  workingDir: z.optional(text(4096)),
  user: z.optional(z.strictObject({ uid: count(0, 2 ** 31), gid: z.optional(count(0, 2 ** 31)) })),
  limits: z.optional(
    z.strictObject({
      nice: described(z.optional(count(0, 19)), 'Added to its niceness. Default 0.'),
      output: described(
        z.optional(z.string().check(z.regex(/^[1-9]\d{0,5}(Ki|Mi)$/, 'a size is written as 64Ki or 5Mi'))),
        'How much of its output is kept: a fifth from the beginning, the rest from the end. Default and most: 5Mi.',
      ),
    }),
  ),
})

described(action, undefined, oneOf(['exec', 'http', 'signal', 'steps', 'reload']))

/** `states[]`: a node of the graph. */
export const state = described(
  z.strictObject({
    name,
    verb: described(
      z.optional(z.enum(['Create', 'Update', 'Delete'])),
      'What it asks of the app as a resource. Default: Create for the first state, Update for others.',
    ),
    when: described(
      z.optional(text(4096)),
      'CEL over probes, role and run: the pod is in this state while it holds, if it does not for an earlier one.',
    ),
    actions: described(
      z.optional(z.array(name).check(z.minLength(1), z.maxLength(32))),
      'Without `when`: the pod is in this state while a run of one of these is in progress.',
    ),
    next: described(z.optional(z.array(name).check(z.maxLength(64))), 'The states that it goes to from here.'),
  }),
  undefined,
  {
    rules: [
      { rule: "self.name != 'Unknown'", message: 'Unknown is what a state is called that is not known' },
      {
        rule: "!has(self.when) || !has(self.verb) || self.verb != 'Delete'",
        message: 'a Delete state has no `when`: that it is reached is for the controller to say',
      },
      {
        rule: "(has(self.next) && size(self.next) > 0) || (has(self.verb) && self.verb == 'Delete')",
        message: 'a state without `next` is the end of the app: it needs `verb: Delete`',
      },
    ],
  },
)

/** `spec` of a Lifecycle, and the sidecar's configuration. */
export const lifecycleSpec = z.strictObject({
  states: described(
    z.optional(z.array(state).check(z.maxLength(64))),
    'The graph. The first state is the initial one.',
    byName,
  ),
  probes: described(
    z.optional(z.array(probe).check(z.maxLength(64))),
    "What is observed, again and again. The value of the one named role is the pod's role.",
    byName,
  ),
  actions: described(z.optional(z.array(action).check(z.maxLength(128))), 'What can be asked of a pod.', byName),
  preStop: described(z.optional(name), 'The action that a pod runs when Kubernetes ends it.'),
})

export type LifecycleSpec = z.infer<typeof lifecycleSpec>
export type Probe = z.infer<typeof probe>
export type Action = z.infer<typeof action>
export type Step = z.infer<typeof step>
export type HttpCall = z.infer<typeof http>
export type ParamSchema = z.infer<typeof paramSchema>
