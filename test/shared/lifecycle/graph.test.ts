import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Graph, graphOf } from '../../../shared/lifecycle/graph.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { postgres } from './postgres.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)
const graph = graphOf(postgres)

describe('a graph', () => {
  it('knows the verb and the kind of each state', () => {
    expect(graph.nodes.map(({ name, verb, kind }) => [name, verb, kind])).toEqual([
      ['Start', 'Create', 'observed'],
      ['Running', 'Update', 'observed'],
      ['Servicing', 'Update', 'transient'],
      ['Stopping', 'Update', 'transient'],
      ['End', 'Delete', 'delete'],
    ])
    expect(graphOf({ states: [{ name: 'a', next: ['b'] }, { name: 'b' }] }).nodes.map(node => node.verb)).toEqual([
      'Create',
      'Update',
    ])
  })

  it('knows the state of an action', () => {
    expect(graph.transientOf('backup')?.name).toBe('Servicing')
    expect(graph.transientOf('other')).toBeUndefined()
  })

  it('leads from any state to any other by the shortest way', () => {
    expect(graph.path('Start', 'Servicing')).toEqual(['Start', 'Running', 'Servicing'])
    expect(graph.path('Running', 'End')).toEqual(['Running', 'Stopping', 'End'])
    expect(graph.path('Start', 'End')).toEqual(['Start', 'Stopping', 'End'])
    expect(graph.path('End', 'Running')).toEqual(['End', 'Start', 'Running'])
    expect(graph.path('Running', 'Running')).toEqual(['Running'])
  })

  it('does not lead through a Delete state', () => {
    expect(graph.path('Running', 'Start')).toBeUndefined()
    expect(graph.path('Stopping', 'Start')).toBeUndefined()
  })

  it('does not lead through a state whose action would have to be guessed', () => {
    const through = (spec: LifecycleSpec) => graphOf(spec).path('a', 'c')
    const states = (actions: string[]) => [
      { name: 'a', next: ['b'] },
      { name: 'b', actions, next: ['c'] },
      { name: 'c', next: ['a'] },
    ]
    const exec = { command: ['x'] }
    expect(through({ states: states(['x']), actions: [{ name: 'x', exec }] })).toEqual(['a', 'b', 'c'])
    expect(through({ states: states(['x', 'y']), actions: [{ name: 'x', exec }] })).toBeUndefined()
    const needs = { name: 'x', exec, params: { p: { type: 'string' } } }
    expect(through({ states: states(['x']), actions: [needs] })).toBeUndefined()
    const optional = { name: 'x', exec, params: { p: { type: 'string', default: '' }, q: { required: false } } }
    expect(through({ states: states(['x']), actions: [optional] })).toEqual(['a', 'b', 'c'])
  })

  it('knows no way to or from what is no state', () => {
    expect(graph.path('Start', 'Nowhere')).toBeUndefined()
    expect(graph.path('Nowhere', 'Start')).toBeUndefined()
    expect(graph.path('Nowhere', 'Nowhere')).toBeUndefined()
    expect(graph.path('constructor', 'constructor')).toBeUndefined()
  })

  it('knows what can be reached', () => {
    expect([...graph.reachable(['Stopping'])].toSorted()).toEqual(['End', 'Running', 'Servicing', 'Start', 'Stopping'])
    expect([...graph.reachable(['Nowhere'])]).toEqual([])
  })
})

const names = ['a', 'b', 'c', 'd', 'e', 'f']
const specs = fc
  .tuple(
    fc.array(
      fc.record({
        sort: fc.constantFrom('observed', 'one', 'two', 'needy', 'delete'),
        next: fc.uniqueArray(fc.constantFrom(...names)),
      }),
      { minLength: 1, maxLength: names.length },
    ),
  )
  .map(([sorts]): LifecycleSpec => {
    const actions: NonNullable<LifecycleSpec['actions']> = []
    const states = sorts.map(({ sort, next }, index) => {
      const name = names[index] ?? ''
      const action = (suffix: string, params = {}) => {
        actions.push({ name: `${name}${suffix}`, exec: { command: ['x'] }, params })
        return `${name}${suffix}`
      }
      if (sort === 'one') return { name, next, actions: [action('1')] }
      if (sort === 'two') return { name, next, actions: [action('1'), action('2')] }
      if (sort === 'needy') return { name, next, actions: [action('1', { p: { type: 'string' } })] }
      if (sort === 'delete') return { name, next, verb: 'Delete' as const }
      return { name, next, when: 'true' }
    })
    return { states, actions }
  })

/** Every way without a circle that the rules allow, tried one after the other; the shortest, and of those the first as written. */
function reference(spec: LifecycleSpec, from: string, to: string): string[] | undefined {
  const states = new Map((spec.states ?? []).map(state => [state.name, state]))
  const mayPass = (name: string) => {
    const state = states.get(name)
    if (state?.verb === 'Delete') return false
    if (!state?.actions) return true
    const [action] = state.actions
    const declared = spec.actions?.find(one => one.name === action)
    return state.actions.length === 1 && Object.keys(declared?.params ?? {}).length === 0
  }
  let best: string[] | undefined
  const walk = (path: string[]) => {
    const last = path.at(-1) ?? ''
    if (last === to) {
      if (!best || path.length < best.length) best = path
      return
    }
    if (path.length > 1 && !mayPass(last)) return
    for (const next of states.get(last)?.next ?? []) {
      if (states.has(next) && !path.includes(next)) walk([...path, next])
    }
  }
  if (states.has(from)) walk([from])
  return best
}

it(`a path is the one that is found by trying all: seed ${seed}`, { timeout: 60_000 }, () => {
  const property = fc.property(specs, spec => {
    const graph = graphOf(spec)
    for (const from of names) for (const to of names) expect(graph.path(from, to)).toEqual(reference(spec, from, to))
  })
  fc.assert(property, { seed, numRuns: 200 })
})

it(`what can be reached is what some number of steps leads to: seed ${seed}`, () => {
  const property = fc.property(specs, fc.subarray(names), (spec, from) => {
    expect([...graphOf(spec).reachable(from)].toSorted()).toEqual(closure(graphOf(spec), from))
  })
  fc.assert(property, { seed })
})

function closure({ nodes }: Graph, from: string[]): string[] {
  let reached = new Set(from.filter(name => nodes.some(node => node.name === name)))
  for (const _ of nodes) {
    const further = nodes.filter(node => reached.has(node.name)).flatMap(node => node.next)
    reached = new Set([...reached, ...further])
  }
  return [...reached].toSorted()
}
