import { beforeEach, describe, expect, it } from 'vitest'
import { createLog, type Level, type Log, levels } from '../../shared/log.ts'

let lines: Record<string, unknown>[]
let log: Log

beforeEach(() => {
  lines = []
  log = createLog({ destination: { write: line => void lines.push(JSON.parse(line)) } })
})

const messages = () => lines.map(line => line['msg'])

it('writes JSON lines, with level and time in words', () => {
  log.logger.info({ object: 'default/x' }, 'hello')
  expect(lines).toEqual([
    {
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      object: 'default/x',
      msg: 'hello',
    },
  ])
})

it("puts its fields, and a child's, into every line", () => {
  const fielded = createLog({
    fields: { app: 'widgets' },
    destination: { write: line => void lines.push(JSON.parse(line)) },
  })
  fielded.child({ part: 'election' }).child({ n: 1 }).info('x')
  expect(lines[0]).toMatchObject({ app: 'widgets', part: 'election', n: 1 })
})

it('tells errors with what they carry and how they came about', () => {
  log.logger.error({ err: new Error('outer', { cause: new Error('inner') }) }, 'failed')
  expect(lines[0]).toMatchObject({
    err: { type: 'Error', message: expect.stringContaining('outer'), stack: expect.stringContaining('inner') },
  })
})

it.each([
  ['undefined', undefined],
  ['a bigint', 10n],
  ['an object without a prototype', Object.create(null)],
  ['a symbol', Symbol('s')],
])('survives an error that is %s', (_what, thrown) => {
  log.logger.error({ err: thrown }, 'failed')
  expect(messages()).toEqual(['failed'])
})

it('survives an error that contains itself', () => {
  const error = Object.assign(new Error('round'), { self: undefined as unknown })
  error.self = error
  log.logger.error({ err: error }, 'failed')
  expect(messages()).toEqual(['failed'])
})

describe('the level', () => {
  it('is info, unless told otherwise', () => {
    log.logger.debug('quiet')
    log.logger.info('loud')
    expect(messages()).toEqual(['loud'])
    expect(log.level).toBe('info')
    expect(createLog({ level: 'silent' }).level).toBe('silent')
  })

  it('can be changed while it runs, for every logger made by child, those made before too', () => {
    const child = log.child({ part: 'x' })
    log.level = 'debug'
    const later = log.child({ part: 'y' })
    for (const logger of [log.logger, child, later, child.child({})]) logger.debug('told')
    expect(messages()).toHaveLength(4)
    log.level = 'error'
    for (const logger of [log.logger, child, later]) logger.warn('not told')
    expect(messages()).toHaveLength(4)
  })

  it.each(levels)('can be %s', level => {
    log.level = level
    expect(log.level).toBe(level)
  })

  it('cannot be something else, and stays what it was', () => {
    expect(() => {
      log.level = 'loud' as Level
    }).toThrow('"loud" is no log level; there are trace, debug, info, warn, error, fatal, silent')
    expect(log.level).toBe('info')
  })
})
