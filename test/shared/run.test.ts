import { describe, expect, it } from 'vitest'
import { type Phase, phases } from '../../shared/protocol/schemas.ts'
import {
  advance,
  type Cause,
  type Exit,
  isInProgress,
  isTerminal,
  outcomeOf,
  settledBy,
  type Verdict,
} from '../../shared/run.ts'

const exit = (cause: Cause, more: Partial<Exit> = {}): Exit => ({
  cause,
  code: null,
  signal: null,
  error: null,
  ...more,
})

describe('the phases of a run', () => {
  const steps: Record<Phase, Phase[]> = {
    Accepted: ['Running', 'Failed', 'Cancelled', 'Unknown'],
    Running: ['Succeeded', 'Failed', 'Cancelled', 'TimedOut', 'Unknown'],
    Unknown: ['Succeeded', 'Failed'],
    Succeeded: [],
    Failed: [],
    Cancelled: [],
    TimedOut: [],
  }

  it.each(phases)('from %s go where the protocol says, and nowhere else', from => {
    for (const to of phases) {
      if (steps[from].includes(to)) expect(advance(from, to)).toBe(to)
      else expect(() => advance(from, to)).toThrow(`a run that is ${from} cannot become ${to}`)
    }
  })

  it('are terminal if nothing leaves them, which Unknown is not', () => {
    expect(phases.filter(isTerminal)).toEqual(['Succeeded', 'Failed', 'Cancelled', 'TimedOut'])
    expect(phases.filter(isInProgress)).toEqual(['Accepted', 'Running'])
  })
})

describe('the outcome of a run', () => {
  it.each<[string, Exit, Verdict | undefined, Phase, string | undefined]>([
    ['exited with 0', exit('exited', { code: 0 }), undefined, 'Succeeded', undefined],
    ['exited with 3', exit('exited', { code: 3 }), undefined, 'Failed', 'ExitCode'],
    ['ended by a signal', exit('exited', { signal: 'SIGSEGV' }), undefined, 'Failed', 'Signalled'],
    ['exited with 3, whatever verify would say', exit('exited', { code: 3 }), 'Succeeded', 'Failed', 'ExitCode'],
    ['could not be executed', exit('notExecuted', { error: 'exec: ENOENT' }), undefined, 'Failed', 'NotExecuted'],
    ['was never claimed', exit('notStarted'), undefined, 'Failed', 'NotStarted'],
    ['cancelled', exit('cancelled', { signal: 'SIGTERM' }), undefined, 'Cancelled', 'Cancelled'],
    ['cancelled, and it happened', exit('cancelled'), 'Succeeded', 'Succeeded', undefined],
    ['cancelled, and it did not happen', exit('cancelled'), 'Failed', 'Cancelled', 'Cancelled'],
    ['cancelled, and nobody can tell', exit('cancelled'), 'Unknown', 'Unknown', 'Cancelled'],
    ['cancelled, though it exited with 0', exit('cancelled', { code: 0 }), undefined, 'Cancelled', 'Cancelled'],
    ['timed out', exit('timedOut', { signal: 'SIGKILL' }), undefined, 'TimedOut', 'TimedOut'],
    ['timed out, and it happened', exit('timedOut'), 'Succeeded', 'Succeeded', undefined],
    ['timed out, and it did not happen', exit('timedOut'), 'Failed', 'TimedOut', 'TimedOut'],
    ['timed out, and nobody can tell', exit('timedOut'), 'Unknown', 'Unknown', 'TimedOut'],
    ['lost', exit('lost'), undefined, 'Unknown', 'Lost'],
    ['lost, and it happened', exit('lost'), 'Succeeded', 'Succeeded', undefined],
    ['lost, and it did not happen', exit('lost'), 'Failed', 'Failed', 'NotApplied'],
    ['lost, and nobody can tell', exit('lost'), 'Unknown', 'Unknown', 'Lost'],
  ])('%s', (_, ended, verdict, phase, code) => {
    const outcome = outcomeOf(ended, verdict)
    expect(outcome).toMatchObject({ phase, exitCode: ended.code })
    expect(outcome.error?.code).toBe(code)
    expect(() => advance('Running', outcome.phase)).not.toThrow()
  })

  it('says what failed', () => {
    expect(outcomeOf(exit('notExecuted', { error: 'chdir: ENOENT' })).error?.message).toBe(
      'could not be executed: chdir: ENOENT',
    )
    expect(outcomeOf(exit('exited', { code: 3 })).error?.message).toBe('exited with 3')
    expect(outcomeOf(exit('exited', { signal: 'SIGKILL' })).error?.message).toBe('ended by SIGKILL')
  })

  it('that is Unknown is settled by a word, but not by another Unknown', () => {
    expect(settledBy('Succeeded')).toEqual({ phase: 'Succeeded', exitCode: null, error: null })
    expect(settledBy('Failed')?.error?.code).toBe('NotApplied')
    expect(settledBy('Unknown')).toBeUndefined()
  })
})
