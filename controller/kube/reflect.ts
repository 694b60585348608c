/**
 * How a copy of a collection is kept up to date, as a state machine: one pure step from a state and what happened to the next state and
 * what is to be done. The I/O around it is reflector.ts.
 *
 * Expected flow
 *   Starting → Streaming (or Listing, page by page) → Watching, for as long as it goes.
 *   A watch that ends or fails is taken up again where it was. One that is too old (410) begins anew, while the copy stays as it is.
 *
 * Guarantees
 *   - Every object that exists is put, every one that went is removed, in the order in which it happened to that object.
 *   - Between two `prune`s nothing is removed but what the server said was deleted: a new list never leaves a gap.
 *   - After a failure there is always a wait, longer each time in a row, until news come from a watch.
 *   - A server whose versions went back (restored from an older copy) is noticed, and believed.
 */
import { compareVersions } from './versions.ts'

/** Where to go on after a wait. */
export type Resume =
  | { readonly from: 'start' }
  | { readonly from: 'page'; readonly token: string; readonly version: string }
  | { readonly from: 'version'; readonly version: string }

export type Phase =
  /** Nothing has been asked yet. */
  | { readonly at: 'Starting' }
  /** The server streams what exists; a bookmark will mark its end. */
  | { readonly at: 'Streaming' }
  /** A page has been asked for. `version` is that of the first page. */
  | { readonly at: 'Listing'; readonly token?: string | undefined; readonly version?: string | undefined }
  /** The copy is whole as of `version`, and what follows is being streamed. */
  | { readonly at: 'Watching'; readonly version: string }
  /** The same, but for what follows: whether the server has not gone back behind that is being asked. */
  | { readonly at: 'Checking'; readonly version: string }
  /** After a failure. */
  | { readonly at: 'Waiting'; readonly resume: Resume }
  /** The kind is not served. */
  | { readonly at: 'Absent' }

export interface State {
  readonly phase: Phase
  /** Failures since the last news of a watch. Lists do not count: a server may list well and never watch. */
  readonly failures: number
  /** Whether the server is believed to stream what exists. */
  readonly streams: boolean
  /** The highest version that was ever heard of: a server that is complete below it has gone back. */
  readonly newest?: string | undefined
}

export type Happening<O> =
  | { readonly is: 'started' }
  | { readonly is: 'page'; readonly items: readonly O[]; readonly version: string; readonly token?: string | undefined }
  | { readonly is: 'put'; readonly object: O; readonly version: string }
  | { readonly is: 'removed'; readonly object: O; readonly version: string }
  | { readonly is: 'bookmark'; readonly version: string; readonly endsInitial: boolean }
  /** The version that the server is at. */
  | { readonly is: 'checked'; readonly version: string }
  /** The stream ended as streams do. `idle`: it had brought nothing, and was short. */
  | { readonly is: 'ended'; readonly idle: boolean }
  /** `expired`: too old. `unsupported`: the server cannot stream what exists. `absent`: no such kind. `passing`: anything else. */
  | {
      readonly is: 'failed'
      readonly how: 'expired' | 'unsupported' | 'absent' | 'passing'
      /** The stream had been open for a decent time before. */
      readonly lived?: boolean
    }
  /** The wait is over. */
  | { readonly is: 'waited' }
  /** The kind may be served now. */
  | { readonly is: 'appeared' }

export type Command<O> =
  | { readonly do: 'stream' }
  | { readonly do: 'list'; readonly token?: string | undefined }
  | { readonly do: 'watch'; readonly version: string }
  | { readonly do: 'check' }
  | { readonly do: 'wait'; readonly failures: number }
  | { readonly do: 'park' }
  /** A new round begins: what is not put before `prune` does not exist. `rolledBack`: older versions are to be believed. */
  | { readonly do: 'begin'; readonly rolledBack: boolean }
  | { readonly do: 'put'; readonly object: O; readonly initial: boolean }
  | { readonly do: 'remove'; readonly object: O }
  /** The round is complete as of `version`. */
  | { readonly do: 'prune'; readonly version: string }

export type Step<O> = readonly [State, readonly Command<O>[]]

export function initial(streams = true): State {
  return { phase: { at: 'Starting' }, failures: 0, streams }
}

export function step<O>(state: State, happened: Happening<O>): Step<O> {
  const { phase } = state
  switch (happened.is) {
    case 'started':
      return begin(state)
    case 'waited':
      return phase.at === 'Waiting' ? resume(state, phase.resume) : [state, []]
    case 'appeared':
      return phase.at === 'Absent' ? begin({ ...state, failures: 0 }) : [state, []]
    case 'page':
      return phase.at === 'Listing' ? page(state, phase, happened) : [state, []]
    case 'put':
    case 'removed':
      return change(state, happened)
    case 'bookmark':
      return bookmark(state, happened)
    case 'checked':
      return phase.at === 'Checking' ? checked(state, phase, happened.version) : [state, []]
    case 'ended':
      return ended(state, happened.idle)
    case 'failed':
      return failed(happened.lived ? { ...state, failures: 0 } : state, happened.how)
  }
}

function begin<O>(state: State, rolledBack = false): Step<O> {
  const start: Command<O> = { do: 'begin', rolledBack }
  // A server that was rolled back is listed, not streamed: a list says its version before its items.
  if (state.streams && !rolledBack) return [{ ...state, phase: { at: 'Streaming' } }, [start, { do: 'stream' }]]
  return [{ ...state, phase: { at: 'Listing' } }, [start, { do: 'list' }]]
}

function resume<O>(state: State, at: Resume): Step<O> {
  switch (at.from) {
    case 'start':
      return begin(state)
    case 'page':
      return [
        { ...state, phase: { at: 'Listing', token: at.token, version: at.version } },
        [{ do: 'list', token: at.token }],
      ]
    case 'version':
      return check(state, at.version)
  }
}

/**
 * A server that was restored from an older copy says nothing, for long, to who watches from what is its future; and then, what is wrong. So
 * it is asked where it is whenever a connection was lost, as every one is when a server is restored. A watch that the server itself ends is
 * taken up without a question: an idle controller asks nothing.
 */
function check<O>(state: State, version: string): Step<O> {
  return [{ ...state, phase: { at: 'Checking', version } }, [{ do: 'check' }]]
}

function checked<O>(state: State, phase: Phase & { at: 'Checking' }, now: string): Step<O> {
  if (isOlder(now, phase.version)) return begin(state, true)
  return [{ ...state, phase: { at: 'Watching', version: phase.version } }, [{ do: 'watch', version: phase.version }]]
}

function page<O>(state: State, phase: Phase & { at: 'Listing' }, got: Happening<O> & { is: 'page' }): Step<O> {
  const version = phase.version ?? got.version
  const commands: Command<O>[] = []
  if (phase.version === undefined && isOlder(version, state.newest)) commands.push({ do: 'begin', rolledBack: true })
  for (const object of got.items) commands.push({ do: 'put', object, initial: true })
  if (got.token) {
    commands.push({ do: 'list', token: got.token })
    return [
      { ...state, phase: { at: 'Listing', token: got.token, version }, newest: newer(state.newest, version) },
      commands,
    ]
  }
  commands.push({ do: 'prune', version }, { do: 'watch', version })
  return [{ ...state, phase: { at: 'Watching', version }, newest: version }, commands]
}

function change<O>(state: State, happened: Happening<O> & { is: 'put' | 'removed' }): Step<O> {
  const { phase } = state
  if (phase.at !== 'Streaming' && phase.at !== 'Watching') return [state, []]
  const command: Command<O> =
    happened.is === 'put'
      ? { do: 'put', object: happened.object, initial: phase.at === 'Streaming' }
      : { do: 'remove', object: happened.object }
  if (phase.at === 'Streaming') return [{ ...state, newest: newer(state.newest, happened.version) }, [command]]
  return [heard(state, phase, happened.version), [command]]
}

function bookmark<O>(state: State, happened: Happening<O> & { is: 'bookmark' }): Step<O> {
  const { phase } = state
  const { version } = happened
  if (phase.at === 'Watching') {
    // A server never marks a place before the one it was asked to begin at, unless it has forgotten what came after.
    if (isOlder(version, phase.version)) return begin(state, true)
    return [heard(state, phase, version), []]
  }
  if (phase.at !== 'Streaming' || !happened.endsInitial) return [state, []]
  if (isOlder(version, state.newest)) return begin(state, true)
  return [{ ...state, phase: { at: 'Watching', version }, newest: version }, [{ do: 'prune', version }]]
}

/** News of a watch. Its version only rises. */
function heard(state: State, phase: Phase & { at: 'Watching' }, news: string): State {
  const version = newer(phase.version, news)
  return { ...state, phase: { at: 'Watching', version }, newest: version, failures: 0 }
}

function ended<O>(state: State, idle: boolean): Step<O> {
  if (idle) return failed(state, 'passing')
  if (state.phase.at === 'Watching') return [{ ...state, failures: 0 }, [{ do: 'watch', version: state.phase.version }]]
  // A stream of what exists that ended without its mark: the server may not know of marks.
  return failed(state, 'unsupported')
}

function failed<O>(state: State, how: (Happening<O> & { is: 'failed' })['how']): Step<O> {
  const { phase } = state
  const failures = state.failures + 1
  if (how === 'absent') return [{ ...state, phase: { at: 'Absent' }, failures }, [{ do: 'park' }]]
  if (how === 'unsupported' && phase.at === 'Streaming') return begin({ ...state, streams: false })
  // Beginning anew is free the first time; a server that keeps saying "expired" is waited for like any other failure.
  if (how === 'expired' && state.failures === 0) return begin({ ...state, failures })
  const again: Resume = how === 'passing' ? whereToResume(phase, failures) : { from: 'start' }
  return [{ ...state, phase: { at: 'Waiting', resume: again }, failures }, [{ do: 'wait', failures }]]
}

function whereToResume(phase: Phase, failures: number): Resume {
  if (phase.at === 'Watching' || phase.at === 'Checking') return { from: 'version', version: phase.version }
  // A token may be one that the server will never know again, and not say so.
  if (phase.at === 'Listing' && phase.token && phase.version && failures < 5)
    return { from: 'page', token: phase.token, version: phase.version }
  if (phase.at === 'Waiting') return phase.resume
  return { from: 'start' }
}

function newer(known: string | undefined, version: string): string {
  return known !== undefined && isOlder(version, known) ? known : version
}

function isOlder(version: string, than: string | undefined): boolean {
  return than !== undefined && compareVersions(version, than) < 0
}
