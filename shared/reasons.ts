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
  AppEnding: {
    means: 'A custom resource is being deleted, and its app is on its way to its end.',
    retried: true,
    todo: 'Nothing: the message says what is waited for. To end the walk at once, annotate the app with shipmate.dev/skip-lifecycle.',
  },
  AppNotObserved: {
    means: 'No controller has looked at the app since it was written.',
    retried: true,
    todo: "Check that Shipmate's controller runs and watches the namespace.",
  },
  Claimed: {
    means: 'The workload belongs to another app already.',
    retried: false,
    todo: 'Delete one of the two apps.',
  },
  CrdOutdated: {
    means: "The cluster's CRD lacks something that the operator was written for.",
    retried: true,
    todo: 'Run the command that the message names.',
  },
  Ended: {
    means: 'The app has come to its end, as it was wished.',
    retried: false,
    todo: 'Nothing. Wish for its first state to start it again.',
  },
  Gated: {
    means: 'No pod is evicted while a run is in progress.',
    retried: true,
    todo: 'Nothing: it ends with the run.',
  },
  GuardLost: {
    means: "The state's guard held once and holds no more, and no other does.",
    retried: true,
    todo: 'Look at the application: the probes say what they found.',
  },
  HotLoop: {
    means: 'The same object is written again and again without getting further.',
    retried: true,
    todo: 'Look for a value that differs each time (a time, a counter, an order), or for another writer of the same field.',
  },
  InvalidLifecycle: { means: 'The lifecycle cannot be used.', retried: false, todo: 'Mend what the message names.' },
  InvalidWish: {
    means: 'The lifecycle cannot carry out what is wished.',
    retried: false,
    todo: 'Wish for what the message names.',
  },
  KindAbsent: {
    means: 'A watched kind is not served; it is watched as soon as its CRD is there.',
    retried: true,
    todo: 'Install the CRD, if it is wanted.',
  },
  LeaderElection: { means: 'A replica became, or stopped being, the leader.', retried: false, todo: 'Nothing.' },
  Missed: {
    means: 'Ticks of a schedule passed without being made, and are not made up for.',
    retried: false,
    todo: 'Raise catchUp or startingDeadline, if they are wanted.',
  },
  Missing: {
    means: 'A pod that should be there is not, or none of them is.',
    retried: true,
    todo: 'Look at the workload and its events.',
  },
  NeverHeld: {
    means: "No state's guard has held since the sidecar's journal began.",
    retried: true,
    todo: 'Look at the application: it may still be starting.',
  },
  NoLifecycle: {
    means: 'There is no Lifecycle of that name in the namespace.',
    retried: true,
    todo: 'Apply it, or mend the name.',
  },
  NoPath: {
    means: 'No path of the lifecycle leads from the state of the app to the wished one.',
    retried: false,
    todo: 'Wish for a state that can be reached, or give the lifecycle another next.',
  },
  NoPods: { means: 'The app has no pods to ask.', retried: true, todo: 'Look at the workload and its events.' },
  NoPrimary: {
    means: 'An action is for the primary, and no pod says that it is one.',
    retried: true,
    todo: 'Look at the probe named role.',
  },
  NoSidecar: {
    means: 'The pod has no sidecar, so its state is not known.',
    retried: false,
    todo: 'Add the sidecar to the pod template.',
  },
  OldSidecar: {
    means: 'A sidecar lacks a feature that a promise needs.',
    retried: false,
    todo: 'Roll the workload out with the newer sidecar.',
  },
  OperationInProgress: {
    means: 'An operation of the app is being carried out.',
    retried: true,
    todo: 'Nothing: the message says what is waited for.',
  },
  OutcomeUnknown: {
    means: 'Nobody saw how a run ended, and nothing can settle it.',
    retried: false,
    todo: 'Find out what happened, and say it in settle of the Operation.',
  },
  Overlap: {
    means: 'A tick was skipped, as an Operation of the same schedule has not ended.',
    retried: false,
    todo: 'Nothing, or choose another overlap.',
  },
  ScaledToZero: { means: 'The workload is wished to have no pods.', retried: false, todo: 'Nothing, or scale it up.' },
  SeveralPrimaries: {
    means: 'An action is for the primary, and several pods say that they are one.',
    retried: true,
    todo: 'Look at the application: it may be split.',
  },
  Superseded: { means: 'Something else was wished before it was begun.', retried: false, todo: 'Nothing.' },
  TargetGone: {
    means: 'A pod that was asked is gone, and no other takes its name.',
    retried: false,
    todo: 'Make another Operation, if it is still wanted.',
  },
  Unreachable: {
    means: 'The sidecar cannot be reached, so what it last said is not trusted.',
    retried: true,
    todo: 'Look at the pod, its node and the network policies between.',
  },
  WishFailed: {
    means: 'The operation of a wish did not succeed.',
    retried: false,
    todo: 'Read the Operation; then change the wish, for instance its request.',
  },
} as const satisfies Record<string, Entry>

export type Reason = keyof typeof reasons
