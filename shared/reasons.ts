/**
 * The one list of words that Shipmate uses for what went wrong or what happened: codes of errors, reasons of events and conditions.
 *
 * Guarantee: a word that is not here does not compile, and a word means the same wherever it is seen.
 */
interface Entry {
  /** What it says, to a person. */
  readonly means: string
  /** Whether Shipmate tries again by itself. */
  readonly retried: boolean
  /** What a person can do. */
  readonly todo: string
}

/** Codes of errors, as in `error.code`. */
export const errorCodes = {
  NotFound: {
    means: 'The object, or its kind, is not on the server.',
    retried: false,
    todo: 'Check name, namespace and that the CRD is installed.',
  },
  AlreadyExists: {
    means: 'An object of that name exists.',
    retried: false,
    todo: 'Choose another name, or update the one that exists.',
  },
  Conflict: {
    means: 'The object changed since it was read, or a precondition did not hold.',
    retried: true,
    todo: 'Nothing: it is read again and decided anew.',
  },
  Invalid: {
    means: 'The server refused the content of the object.',
    retried: false,
    todo: 'Mend the fields that the message names.',
  },
  BadRequest: {
    means: 'The server did not understand the request.',
    retried: false,
    todo: "Report it: the request is the program's own.",
  },
  Unauthorized: {
    means: 'The server does not know who is asking.',
    retried: true,
    todo: "Check the credentials in the kubeconfig, or the service account's token.",
  },
  Forbidden: {
    means: 'The server knows who is asking and does not allow it.',
    retried: true,
    todo: 'Add the rule that the message names to a Role or ClusterRole.',
  },
  MethodNotAllowed: {
    means: 'The kind does not support this verb.',
    retried: false,
    todo: 'Check the verbs with `kubectl api-resources -o wide`.',
  },
  TooManyRequests: {
    means: 'The server is limiting requests, or a disruption budget refuses an eviction.',
    retried: true,
    todo: "Nothing, unless it lasts: then look at the server's priority levels, or at the budget.",
  },
  Expired: {
    means: 'The revision or the continue token is too old.',
    retried: true,
    todo: 'Nothing: the list is read again.',
  },
  Unavailable: {
    means: 'The server could not be reached, or could not answer.',
    retried: true,
    todo: 'Check the server and the network between.',
  },
  DeadlineExceeded: {
    means: 'No complete answer came in time.',
    retried: true,
    todo: "Check the server's load and the network between.",
  },
  Garbled: {
    means: 'What came back is not what the protocol allows.',
    retried: true,
    todo: 'Look for a proxy in between that changes or cuts answers.',
  },
  Aborted: { means: 'The caller no longer wants the answer.', retried: false, todo: 'Nothing.' },
  NotLeading: {
    means: 'The lease is not held (any more), so nothing is written.',
    retried: true,
    todo: 'Nothing: another replica leads.',
  },
  Terminal: {
    means: 'Trying again cannot help until the object changes.',
    retried: false,
    todo: 'Mend the object as the message says.',
  },
  Failed: {
    means: 'Something failed that has no word of its own.',
    retried: true,
    todo: 'Read the message.',
  },
  ExecFailed: {
    means: 'The command in the container could not be run.',
    retried: false,
    todo: "Check the pod, the container's name and the command.",
  },
  Misuse: {
    means: 'The program used Shipmate in a way that cannot work.',
    retried: false,
    todo: 'Mend the program as the message says.',
  },
} as const satisfies Record<string, Entry>

export type ErrorCode = keyof typeof errorCodes

/** Reasons of events and conditions, as in `event.reason`. */
export const reasons = {
  CrdOutdated: {
    means: "The cluster's CRD lacks something that the operator was written for.",
    retried: true,
    todo: 'Run the command that the message names.',
  },
  HotLoop: {
    means: 'The same object is written again and again without getting further.',
    retried: true,
    todo: 'Look for a value that differs each time (a time, a counter, an order), or for another writer of the same field.',
  },
  KindAbsent: {
    means: 'A watched kind is not served; it is watched as soon as its CRD is there.',
    retried: true,
    todo: 'Install the CRD, if it is wanted.',
  },
  LeaderElection: { means: 'A replica became, or stopped being, the leader.', retried: false, todo: 'Nothing.' },
} as const satisfies Record<string, Entry>

export type Reason = keyof typeof reasons
