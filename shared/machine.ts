/**
 * A small state machine: a table of states, their events and where each leads, and one pure step. Runs and lifecycles are such machines.
 *
 * Guarantees: a step that the table does not have is refused and changes nothing; a path is immutable, and knows every state that it has passed.
 */

/** For each state its events, and the state to which each leads. */
export type Table<State extends string, Event extends string> = {
  readonly [state in State]: { readonly [event in Event]?: State }
}

export interface Machine<State extends string, Event extends string> {
  readonly states: readonly State[]
  /** Where the event leads, or undefined if the state does not have it. */
  step(state: State, event: Event): State | undefined
  /** What can happen in a state. */
  events(state: State): Event[]
  /** Whether nothing leads out of the state. */
  isFinal(state: State): boolean
}

/** Where something is and where it has been. */
export interface Path<State extends string> {
  readonly state: State
  readonly before: Path<State> | null
}

export function machine<State extends string, Event extends string>(table: Table<State, Event>): Machine<State, Event> {
  const eventsOf = (state: State) => (Object.hasOwn(table, state) ? table[state] : {}) as { [event in Event]?: State }
  return {
    states: Object.keys(table) as State[],
    step(state, event) {
      const events = eventsOf(state)
      return Object.hasOwn(events, event) ? events[event] : undefined
    },
    events: state => Object.keys(eventsOf(state)) as Event[],
    isFinal: state => Object.keys(eventsOf(state)).length === 0,
  }
}

/** The machine whose events are the states to which they lead, as in a list of what may come next. */
export function successors<State extends string>(
  next: Readonly<Record<State, readonly NoInfer<State>[]>>,
): Machine<State, State> {
  const states = Object.entries<readonly State[]>(next)
  const table = states.map(([state, nexts]) => [state, Object.fromEntries(nexts.map(to => [to, to]))])
  return machine(Object.fromEntries(table) as Table<State, State>)
}

export function begin<State extends string>(state: State): Path<State> {
  return { state, before: null }
}

/** The path after one more event, or undefined if the machine does not have it there. */
export function follow<State extends string, Event extends string>(
  { step }: Machine<State, Event>,
  path: Path<State>,
  event: Event,
): Path<State> | undefined {
  const state = step(path.state, event)
  return state === undefined ? undefined : { state, before: path }
}

/** Every state of a path, the first one first. */
export function passed<State extends string>(path: Path<State>): State[] {
  const states: State[] = []
  for (let at: Path<State> | null = path; at !== null; at = at.before) states.push(at.state)
  return states.reverse()
}
