import { describe, expect, it } from 'vitest'
import { compileCondition, compileGuard, ExpressionError, roleOf } from '../../../shared/lifecycle/guard.ts'

const declared = ['accepting', 'lag', 'my-probe', 'role']
const probes = {
  accepting: { ok: true, value: null },
  lag: { ok: true, value: '7' },
  'my-probe': { ok: false, value: 'x' },
  role: { ok: true, value: 'primary' },
}
const holds = (when: string, run: { action: string } | null = null) =>
  compileGuard(when, declared).holds({ probes, run })

describe('a guard', () => {
  it.each([
    ['probes.accepting.ok', true],
    ['probes["my-probe"].ok', false],
    ['!probes["my-probe"].ok && probes.accepting.ok', true],
    ['int(probes.lag.value) < 10', true],
    ['probes.accepting.value == "x"', false],
    ['probes.accepting.value == null', true],
    ['role == "primary"', true],
    ['role in ["primary", "leader"]', true],
    ['run == null', true],
    ['run != null && run.action == "backup"', false],
    ['probes.exists(p, !probes[p].ok)', true],
    ['true', true],
  ])('%s is %s', (when, expected) => {
    expect(holds(when)).toBe(expected)
  })

  it('sees the run in progress', () => {
    expect(holds('run != null && run.action == "backup"', { action: 'backup' })).toBe(true)
  })

  it.each([
    ['probes.accepting.ok && probes.lag.ok', ['accepting', 'lag']],
    ['probes["my-probe"].ok || has(probes.lag)', ['my-probe', 'lag']],
    ['role == "primary"', ['role']],
    ['probes.role.ok', ['role']],
    ['run == null', []],
    ['[probes.lag.ok, {"a": probes.accepting.ok}["a"]].all(x, x)', ['lag', 'accepting']],
    ['probes.all(p, probes[p].ok)', declared],
    ['"x" in probes', declared],
    ['probes[role].ok', declared],
    ['cel.bind(x, probes, x.lag.ok)', declared],
  ])('%s needs %s', (when, names) => {
    expect(compileGuard(when, declared).probes.toSorted()).toEqual(names.toSorted())
  })

  it.each([
    ['probes.acepting.ok', '"acepting" is no probe; did you mean "accepting"?'],
    ['probes["nothing at all"].ok', '"nothing at all" is no probe; there are accepting, lag, my-probe, role'],
    ['probes.constructor.ok', '"constructor" is no probe'],
    ['probes.accepting.okay', 'No such key: okay, at character 18'],
    ['probes.accepting', 'gives a probe, not true or false'],
    ['1 + 1', 'gives int, not true or false'],
    ['probes.accepting.ok == "yes"', 'no such overload: bool == string'],
    ['probes.accepting.ok &&', 'is no CEL expression: Unexpected token: EOF'],
    ['state == "Running"', 'Unknown variable: state'],
    ['run.acton == "x"', 'a run has no "acton"; did you mean "action"?'],
    ['', 'is no CEL expression'],
    [`${'('.repeat(100)}true${')'.repeat(100)}`, 'Exceeded maxDepth'],
  ])('%s does not compile', (when, message) => {
    expect(() => compileGuard(when, declared)).toThrow(ExpressionError)
    expect(() => compileGuard(when, declared)).toThrow(message)
  })

  it('with role needs a probe of that name', () => {
    expect(() => compileGuard('role == "x"', ['lag'])).toThrow(
      'role is what a probe named "role" says, and there is none',
    )
  })

  it('that cannot be evaluated does not hold, and says why once until it can be again', () => {
    const guard = compileGuard('int(probes.lag.value) < 10', declared)
    const reasons: string[] = []
    const at = (value: string) => {
      const answers = { ...probes, lag: { ok: true, value } }
      return guard.holds({ probes: answers, run: null }, reason => reasons.push(reason))
    }
    expect([at('x'), at('x'), at('7'), at('y')]).toEqual([false, false, true, false])
    expect(reasons).toHaveLength(2)
  })

  it('that gives something else than true or false does not hold', () => {
    const reasons: string[] = []
    const guard = compileGuard('probes.lag.value', declared)
    expect(guard.holds({ probes, run: null }, reason => reasons.push(reason))).toBe(false)
    expect(reasons).toEqual(['gives string, not true or false'])
  })

  it('does not hold by a probe without an answer', () => {
    const unanswered = { ...probes, accepting: { ok: null, value: null } }
    expect(compileGuard('probes.accepting.ok', declared).holds({ probes: unanswered, run: null })).toBe(false)
    expect(compileGuard('!probes.accepting.ok', declared).holds({ probes: unanswered, run: null })).toBe(false)
  })
})

it('a role is what its probe says while it is ok', () => {
  expect(roleOf(probes)).toBe('primary')
  expect(roleOf({ role: { ok: false, value: 'primary' } })).toBeNull()
  expect(roleOf({})).toBeNull()
})

describe('a condition of a poll', () => {
  const answer = {
    status: 202,
    headers: { 'retry-after': '3' },
    body: { state: 'done', percent: 100, items: [1, 2.5] },
  }
  const holds = (text: string) => compileCondition(text).holds(answer)

  it.each([
    ['status == 202', true],
    ['status >= 200 && status < 300', true],
    ['body.state == "done"', true],
    ['body.percent >= 100', true],
    ['body.percent == 100', true],
    ['body.items[0] == 1 && size(body.items) == 2', true],
    ['headers["retry-after"] == "3"', true],
    ['has(body.error)', false],
    ['body.error == "x"', false],
  ])('%s is %s', (text, expected) => {
    expect(holds(text)).toBe(expected)
  })

  it('may be about a body that is no JSON', () => {
    expect(compileCondition('body.contains("OK")').holds({ status: 200, headers: {}, body: 'all OK' })).toBe(true)
  })

  it('says why it cannot be evaluated', () => {
    const reasons: string[] = []
    compileCondition('body.error == "x"').holds(answer, reason => reasons.push(reason))
    expect(reasons).toEqual(['No such key: error, at character 6'])
  })

  it('compiles only over what there is', () => {
    expect(() => compileCondition('code == 200')).toThrow('Unknown variable: code')
    expect(() => compileCondition('status')).toThrow('gives int')
  })
})
