/**
 * Closes a test run: says which tests were skipped because something they need is not there, and how to have it, and then,
 * as the very last line, `N passed, N failed, N skipped`. Whatever makes the run fail counts as failed, not tests alone.
 */
import type { Reporter, SerializedError, TestCase, TestModule, Vitest } from 'vitest/node'
import { needs } from './setup/needs.ts'

interface Outcome {
  passed: number
  failed: number
  skipped: number
  /** How many tests were skipped for want of what, one line each. */
  wants: string[]
}

export default class Closing implements Reporter {
  #outcome: Outcome | undefined
  #isWatching = false

  onInit(vitest: Vitest): void {
    this.#isWatching = vitest.config.watch
    // Not at the end of the tests: other reporters, and whatever is being stopped, may still have something to say.
    process.once('exit', code => this.#print(code))
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const tests = modules.flatMap(module => [...module.children.allTests()])
    const inState = (state: string) => tests.filter(test => test.result().state === state)
    const suites = modules.flatMap(module => [module, ...module.children.allSuites()])
    const broken = suites.filter(suite => suite.errors().length > 0)
    const skipped = inState('skipped')
    this.#outcome = {
      passed: inState('passed').length,
      failed: inState('failed').length + broken.length + unhandled.length,
      skipped: skipped.length,
      wants: [
        ...Object.entries(needs).flatMap(([name, need]) => {
          const count = need.met ? 0 : skipped.filter(test => test.project.name === name).length
          if (count === 0) return []
          return `${count} ${count === 1 ? 'test needs' : 'tests need'} ${need.what} and did not run: ${need.how}.`
        }),
        ...reasons(
          skipped.filter(test => Object.entries(needs).every(([name, need]) => need.met || test.project.name !== name)),
        ),
      ],
    }
    if (this.#isWatching) this.#print(0)
  }

  #print(exitCode: number): void {
    if (!this.#outcome) return
    const { passed, failed, skipped, wants } = this.#outcome
    // Something failed that is not a test, such as what is set up before them.
    const failures = failed === 0 && exitCode !== 0 ? 1 : failed
    process.stdout.write(`\n${[...wants, `${passed} passed, ${failures} failed, ${skipped} skipped`].join('\n')}\n`)
    this.#outcome = undefined
  }
}

/** Why tests were skipped that say so: for all of their file, or in their names, or that of a suite around them: `… (skipped: REASON)`. */
function reasons(skipped: TestCase[]): string[] {
  const named = (test: TestCase) => test.fullName.match(/\(skipped: (.+?)\)( > |$)/)?.[1]
  const found = skipped.flatMap(test => test.module.meta().skipped ?? named(test) ?? [])
  const counts = Map.groupBy(found, reason => reason)
  return [...counts].map(
    ([reason, { length }]) => `${length} ${length === 1 ? 'test' : 'tests'} did not run: ${reason}.`,
  )
}
