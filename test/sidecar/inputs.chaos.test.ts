/**
 * Inputs of every kind that the sidecar reads, from a seed: parameters under random schemas, lifecycles, configuration files, journals. None makes it throw.
 *
 * 900 inputs a schedule; with the 100 requests a schedule of server/fuzz.chaos.test.ts: 20,000 in `npm test`, 100,000 in CI, 1,000,000 at night.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { compileLifecycle } from '../../shared/lifecycle/compile.ts'
import { validateLifecycle } from '../../shared/lifecycle/validate.ts'
import { createLog } from '../../shared/log.ts'
import { schemaFindings } from '../../shared/params/keywords.ts'
import { compileParams } from '../../shared/params/schema.ts'
import { examine } from '../../sidecar/config/examine.ts'
import { parseConfig } from '../../sidecar/config/parse.ts'
import { noFault } from '../../sidecar/faults.ts'
import { openJournal } from '../../sidecar/journal/journal.ts'
import { encode } from '../../sidecar/journal/line.ts'
import { postgres } from '../shared/lifecycle/postgres.ts'

const first = Number(process.env.SHIPMATE_SEED)
const schedules = Number(process.env.SHIPMATE_SCHEDULES)
const seeds = `seeds ${first} to ${first + schedules - 1}`
const { logger: log } = createLog({ level: 'silent' })
const folder = mkdtempSync(join(tmpdir(), 'shipmate-inputs-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** `count` inputs for each seed; a failure names its seed. */
async function each<T>(inputs: fc.Arbitrary<T>, count: number, judge: (input: T) => unknown): Promise<void> {
  const property = fc.asyncProperty(inputs, async input => {
    await judge(input)
  })
  for (let seed = first; seed < first + schedules; seed++) {
    const found = await fc.check(property, { seed, numRuns: count })
    const replay = `SHIPMATE_SEED=${seed} npx vitest run test/sidecar/inputs.chaos.test.ts`
    if (found.failed) throw new Error(`${fc.defaultReportMessage(found)}\nreplay: ${replay}`)
  }
}

const leaf = fc.record(
  {
    type: fc.constantFrom('string', 'number', 'integer', 'boolean', 'array', 'object', 'null'),
    enum: fc.array(fc.jsonValue(), { minLength: 1, maxLength: 3 }),
    pattern: fc.constantFrom('a', '^.*$', '\\d+', '['),
    minLength: fc.integer({ min: -1, max: 3 }),
    minimum: fc.integer(),
    multipleOf: fc.integer({ min: 0, max: 3 }),
    format: fc.constantFrom('uri', 'uuid', 'date-time', 'nothing'),
    maxItems: fc.nat(3),
    uniqueItems: fc.boolean(),
  },
  { requiredKeys: [] },
)
const { schema } = fc.letrec<{ schema: unknown }>(tie => ({
  schema: fc.oneof(
    { maxDepth: 2 },
    leaf,
    fc.record(
      {
        properties: fc.dictionary(fc.constantFrom('a', 'b', 'constructor', 'a/b~%'), tie('schema')),
        items: tie('schema'),
        anyOf: fc.array(tie('schema'), { maxLength: 2 }),
        oneOf: fc.array(tie('schema'), { maxLength: 2 }),
        allOf: fc.array(tie('schema'), { maxLength: 2 }),
        not: tie('schema'),
        propertyNames: tie('schema'),
        additionalProperties: fc.oneof(fc.boolean(), tie('schema')),
        required: fc.array(fc.constantFrom('a', 'b')),
      },
      { requiredKeys: [] },
    ),
  ),
}))
const values = fc.oneof(
  fc.jsonValue(),
  fc.dictionary(fc.constantFrom('a', 'b', 'a/b~%', 'constructor'), fc.jsonValue()),
)

it(`parameters: a schema in which nothing is wrong never makes a check throw: ${seeds}`, async () => {
  await each(fc.tuple(schema, fc.array(values, { minLength: 10, maxLength: 10 })), 40, ([schema, all]) => {
    if (schemaFindings(schema, [], true).length > 0) return
    const { check } = compileParams({ x: schema as Record<string, unknown> })
    for (const value of all) {
      const { params, problems } = check({ x: value })
      expect(params === undefined).toBe(problems !== undefined)
    }
  })
})

const anything = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withSet: true,
})

it(`lifecycles: whatever is given is judged without a throw: ${seeds}`, async () => {
  await each(anything, 130, value => {
    expect(validateLifecycle(value).problems).toBeInstanceOf(Array)
  })
})

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
const paths = pathsOf(postgres)
const change = fc.tuple(fc.constantFrom(...paths), fc.constantFrom('replace', 'remove', 'add'), odd, fc.string())

it(`lifecycles: so is a good one of which one part was replaced; and what has no error compiles: ${seeds}`, async () => {
  await each(change, 150, ([path, how, value, name]) => {
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
  })
})

const piece = fc.constantFrom(
  ...[
    '{',
    '}',
    '[',
    ']',
    ': ',
    '- ',
    '\n',
    '  ',
    '&a ',
    '*a',
    '!!x ',
    '"',
    "'",
    '|',
    '>',
    '#',
    '---',
    '? ',
    '%',
    'a',
    '1',
    '\t',
    '\0',
    '<<',
  ],
)
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(piece).map(pieces => pieces.join('')),
)

it(`configuration files: any text is judged without a throw, and each problem has its place: ${seeds}`, async () => {
  await each(text, 200, text => {
    const { value, problems, locate } = parseConfig(text)
    if (problems.length > 0) expect(value).toBeUndefined()
    for (const { line, column } of [...problems, locate(['a', 0])]) {
      expect(line).toBeGreaterThan(0)
      expect(column).toBeGreaterThan(0)
    }
    const { config, problems: all } = examine(text)
    expect(config === undefined).toBe(all.some(({ severity }) => severity === 'error'))
  })
})

const header = { t: 'journal', v: 1, id: 'j', at: 1, fence: 0, memo: {} }
const line = fc.oneof(
  fc.constantFrom(encode(header), encode({ t: 'dropped', id: 'x' }), encode({ t: 'ended', id: 'x' }), '\n'),
  fc.jsonValue().map(value => encode({ t: 'memo', memo: { value } })),
  fc.dictionary(fc.constantFrom('t', 'id', 'run', 'at'), fc.jsonValue()).map(record => encode(record)),
  fc.string({ unit: 'binary' }),
)
const journal = fc
  .tuple(fc.boolean(), fc.array(line, { maxLength: 8 }), fc.nat(40))
  .map(([hasHeader, lines, cut]) => Buffer.from(`${hasHeader ? encode(header) : ''}${lines.join('')}`).subarray(cut))

it(`journals: any content is opened, and opened again with the id that it has then: ${seeds}`, async () => {
  const open = () => openJournal({ stateDir: folder, clock: systemClock, log, fault: noFault })
  await each(journal, 20, async content => {
    writeFileSync(join(folder, 'journal'), content)
    const opened = await open()
    await opened.append({ t: 'memo', memo: { everHeld: true } })
    await opened.close()
    const again = await open()
    await again.close()
    expect(again.memory.journalId).toBe(opened.memory.journalId)
    expect(again.memory.memo.everHeld).toBe(true)
    expect(again.memory.runs).toEqual(opened.memory.runs)
  })
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
