/**
 * The tests, by what they need. A file's name says it: `*.test.ts` needs Node alone, `*.server.test.ts` a real API server, `*.node.test.ts` a
 * cluster with a node, `*.chaos.test.ts` runs random schedules. What is not there is skipped, and the reporter says how to have it.
 */
import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig, type TestProjectConfiguration } from 'vitest/config'
import { needs } from './test/setup/needs.ts'

// Where random schedules begin, and how many there are. A seed alone replays that one.
const { SHIPMATE_SEED: seed, SHIPMATE_SCHEDULES: schedules } = process.env

interface Kind {
  name: string
  include: string[]
  exclude?: string[]
  globalSetup?: string[]
  setupFiles?: string[]
  testTimeout?: number
}

const kinds: Kind[] = [
  {
    name: 'unit',
    include: ['test/**/*.test.ts'],
    exclude: ['test/**/*.{server,node,chaos}.test.ts', 'test/{cli,package}/**'],
    // Of a test that hangs; on a machine that does something else as well, a second may take ten.
    testTimeout: 60_000,
  },
  {
    name: 'package',
    include: ['test/{cli,package}/**/*.test.ts'],
    exclude: ['test/**/*.{server,node,chaos}.test.ts'],
    globalSetup: ['./test/setup/build.ts'],
    setupFiles: ['./test/setup/built.ts'],
    testTimeout: 120_000,
  },
  { name: 'chaos', include: ['test/**/*.chaos.test.ts'], testTimeout: 600_000 },
  {
    name: 'server',
    include: ['test/**/*.server.test.ts'],
    testTimeout: 60_000,
    ...(needs.server.met ? { globalSetup: ['./test/setup/apiserver.ts'] } : { setupFiles: ['./test/setup/skip.ts'] }),
  },
  {
    name: 'node',
    include: ['test/**/*.node.test.ts'],
    testTimeout: 120_000,
    ...(needs.node.met ? { globalSetup: ['./test/setup/cluster.ts'] } : { setupFiles: ['./test/setup/skip.ts'] }),
  },
]

export default defineConfig({
  // `shipmate` is the source, as it is to the type check: what examples import needs no build.
  resolve: { tsconfigPaths: true },
  test: {
    reporters: ['default', './test/reporter.ts'],
    // Most tests wait for processes and servers: two at once fit a machine with two cores.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    env: { SHIPMATE_SEED: seed ?? '1', SHIPMATE_SCHEDULES: schedules ?? (seed ? '1' : '20') },
    projects: kinds.map(
      ({ exclude = [], ...kind }): TestProjectConfiguration => ({
        extends: true,
        test: { ...kind, exclude: [...configDefaults.exclude, ...exclude] },
      }),
    ),
  },
})
