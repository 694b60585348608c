import fc from 'fast-check'
import { expect, it } from 'vitest'
import { compileLifecycle } from '../../../shared/lifecycle/compile.ts'
import { validateLifecycle } from '../../../shared/lifecycle/validate.ts'
import { postgres } from './postgres.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)

it(`whatever is given is judged without a throw: seed ${seed}`, { timeout: 60_000 }, () => {
  const anything = fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withSet: true,
  })
  const property = fc.property(anything, value => {
    expect(validateLifecycle(value).problems).toBeInstanceOf(Array)
  })
  fc.assert(property, { seed, numRuns: 300 })
})

it(`so is a good one of which one part was replaced; and what has no error compiles: seed ${seed}`, {
  timeout: 60_000,
}, () => {
  const paths = pathsOf(postgres)
  const odd = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom<unknown[]>(
      '',
      'constructor',
      '__proto__',
      '$(params.x)',
      '(',
      'probes',
      'Start',
      'stop',
      '1ms',
      -1,
      null,
      [],
      {},
      [[]],
    ),
    fc.string(),
  )
  const property = fc.property(
    fc.constantFrom(...paths),
    fc.constantFrom('replace', 'remove', 'add'),
    odd,
    fc.string(),
    (path, how, value, name) => {
      const changed = structuredClone(postgres)
      const last = path.at(-1) ?? ''
      let parent: object = changed
      for (const part of path.slice(0, -1)) parent = Reflect.get(parent, part)
      const target: unknown = Reflect.get(parent, last)
      if (how === 'replace') Reflect.set(parent, last, value)
      else if (how === 'remove') Reflect.deleteProperty(parent, last)
      else if (typeof target === 'object' && target !== null) {
        Object.defineProperty(target, Array.isArray(target) ? target.length : name, {
          value,
          enumerable: true,
          configurable: true,
          writable: true,
        })
      }
      const { spec, problems } = validateLifecycle(changed)
      expect(spec === undefined).toBe(problems.some(problem => problem.severity === 'error'))
      if (spec) expect(() => compileLifecycle(spec)).not.toThrow()
    },
  )
  fc.assert(property, { seed, numRuns: 300 })
})

function pathsOf(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  const below =
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, member]) =>
          pathsOf(member, [...path, Array.isArray(value) ? Number(key) : key]),
        )
      : []
  return path.length > 0 ? [path, ...below] : below
}
