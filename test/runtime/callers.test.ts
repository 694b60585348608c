/**
 * Who may read metrics, with an API server that answers as the test says; callers.server.test.ts asks real ones.
 */
import { expect, it } from 'vitest'
import { type Callers, createCallers } from '../../controller/runtime/callers.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

interface Answers {
  /** Users by their tokens. */
  readonly users: Record<string, string>
  readonly allowed: Set<string>
}

function reviewed(answers: Answers): {
  callers: Callers
  asked: string[]
  clock: VirtualClock
  gate: { open: Promise<void> }
} {
  const asked: string[] = []
  const gate = { open: Promise.resolve() }
  const client = {
    async create({ kind }: { kind: string }, { spec }: { spec: Record<string, string> }) {
      asked.push(`${kind} ${spec['token'] ?? spec['user']}`)
      await gate.open
      if (kind === 'TokenReview') {
        const username = answers.users[spec['token'] ?? '']
        if (username === 'broken') throw new Error('the connection was lost')
        return { status: username ? { authenticated: true, user: { username, groups: ['g'] } } : {} }
      }
      return { status: { allowed: answers.allowed.has(spec['user'] ?? '') } }
    },
  }
  const clock = new VirtualClock()
  return { callers: createCallers(client as never, { clock }), asked, clock, gate }
}

const everybody = () => ({ users: { t1: 'ann', t2: 'bob', t3: 'broken' }, allowed: new Set(['ann']) })

it('lets in who may, and says to the others why not', async () => {
  const { callers, asked } = reviewed(everybody())
  expect(await callers('Bearer t1', '/metrics')).toBeUndefined()
  expect(await callers('bearer  t1', '/metrics')).toBeUndefined()
  expect(await callers('Bearer t2', '/metrics')).toEqual({ status: 403, why: 'bob may not get /metrics' })
  expect(await callers('Bearer t9', '/metrics')).toEqual({
    status: 401,
    why: 'the API server does not know this token',
  })
  expect(asked).toEqual([
    ...['TokenReview t1', 'SubjectAccessReview ann'],
    ...['TokenReview t2', 'SubjectAccessReview bob', 'TokenReview t9'],
  ])
})

it.each([
  undefined,
  '',
  'Bearer',
  'Bearer ',
  'Basic t1',
  't1',
  'Bearer t1 t1',
  'Bearer t1\n',
  `Bearer ${'x'.repeat(20_000)}`,
])('asks nobody about %j', async header => {
  const { callers, asked } = reviewed(everybody())
  expect(await callers(header, '/metrics')).toMatchObject({ status: 401 })
  expect(asked).toEqual([])
})

it('asks again after a minute, and after ten seconds about who was refused', async () => {
  const answers = everybody()
  const { callers, asked, clock } = reviewed(answers)
  await callers('Bearer t1', '/metrics')
  await callers('Bearer t2', '/metrics')
  answers.allowed.clear()
  answers.allowed.add('bob')
  await clock.advance(9_999)
  expect(await callers('Bearer t2', '/metrics')).toMatchObject({ status: 403 })
  await clock.advance(1)
  expect(await callers('Bearer t2', '/metrics')).toBeUndefined()
  await clock.advance(49_999)
  expect(await callers('Bearer t1', '/metrics')).toBeUndefined()
  const before = asked.length
  await clock.advance(1)
  expect(await callers('Bearer t1', '/metrics')).toMatchObject({ status: 403 })
  expect(asked.length).toBe(before + 2)
})

it('lets nobody in while the API server cannot be asked, and asks anew each time', async () => {
  const answers = everybody()
  const { callers } = reviewed(answers)
  expect(await callers('Bearer t3', '/metrics')).toMatchObject({ status: 503 })
  answers.users['t3'] = 'ann'
  expect(await callers('Bearer t3', '/metrics')).toBeUndefined()
})

it('asks once for many who come at once with one token, and about few tokens at once', async () => {
  const { callers, asked, gate } = reviewed(everybody())
  const open = Promise.withResolvers<void>()
  gate.open = open.promise
  const same = Array.from({ length: 50 }, () => callers('Bearer t1', '/metrics'))
  const others = Array.from({ length: 50 }, (_, index) => callers(`Bearer other-${index}`, '/metrics'))
  expect(asked).toHaveLength(8)
  open.resolve()
  expect(new Set(await Promise.all(same))).toEqual(new Set([undefined]))
  const statuses = (await Promise.all(others)).map(refusal => refusal?.status)
  expect(statuses.filter(status => status === 401)).toHaveLength(7)
  expect(statuses.filter(status => status === 503)).toHaveLength(43)
})
