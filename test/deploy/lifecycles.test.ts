/**
 * The lifecycles that come with Shipmate: each is one that the sidecar takes, and has the life that its head says.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { Lifecycle } from '../../controller/app/kinds.ts'
import { graphOf } from '../../shared/lifecycle/graph.ts'
import { validateLifecycle } from '../../shared/lifecycle/validate.ts'
import { examine } from '../../sidecar/config/examine.ts'

const folder = join(import.meta.dirname, '../../deploy/lifecycles')
const names = readdirSync(folder).map(file => file.replace('.yaml', ''))
const textOf = (name: string) => readFileSync(join(folder, `${name}.yaml`), 'utf8')

test('are those that the design names', () => {
  expect(names.sort()).toEqual(['generic', 'memcached', 'postgres', 'redis'])
})

describe.each(names)('%s', name => {
  const manifest = parse(textOf(name))
  const { spec } = manifest

  test('has nothing that `shipmate sidecar --check-config` would name, not even a warning', () => {
    expect(examine(textOf(name)).problems).toEqual([])
    expect(validateLifecycle(spec, { requireStates: true }).problems).toEqual([])
  })

  test('is an object of the kind Lifecycle, called as its file is', () => {
    expect(Lifecycle.validate(manifest)).toEqual([])
    expect(manifest.metadata.name).toBe(name)
  })

  test('has a life from Start over Running to End, and again', () => {
    const graph = graphOf(spec)
    for (const [from, to] of [
      ['Start', 'Running'],
      ['Running', 'End'],
      ['Running', 'Servicing'],
      ['Servicing', 'Running'],
      ['End', 'Start'],
    ] as const) {
      expect(graph.path(from, to), `${from} to ${to}`).toBeDefined()
    }
  })
})

test('generic: Healing and Unavailable are entered by observation alone, and there is a way out of them', () => {
  const graph = graphOf(parse(textOf('generic')).spec)
  for (const name of ['Healing', 'Unavailable']) {
    expect(graph.nodes.flatMap(({ next }) => next)).not.toContain(name)
    expect(graph.node(name)?.isGuarded).toBe(true)
    expect(graph.path(name, 'Running')).toEqual([name, 'Running'])
    expect(graph.path('Running', name)).toBeUndefined()
  }
})
