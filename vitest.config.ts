/**
 * The tests, by what they need. A file's name says it: `*.test.ts` needs Node alone, `*.server.test.ts` an API server, `*.node.test.ts` a cluster with a node,
 * `*.chaos.test.ts` runs random schedules. Those with an API server run on the embedded one, and on a real one as well where there is one. What is not there is
 * skipped, and the reporter says how to have it.
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
  env?: Record<string, string>
}

/** These hold the embedded server against a real one, or against Go, */
const comparing = ['{schema,patch,controllers,conformance,testing}/**/*', 'kubectl/same', 'requests/protobuf'].map(
  files => `test/devcluster/${files}.server.test.ts`,
)
/** of these a real one shows more, where there is one, */
const onOne = ['test/runtime/network.chaos.server.test.ts']
/** and these bring an embedded one of their own, or need no other. */
const selfContained = ['test/devcluster/{foreign,node}/**/*.server.test.ts']

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
    name: 'embedded',
    include: ['test/**/*.server.test.ts'],
    exclude: needs.server.met ? [...comparing, ...onOne] : comparing,
    testTimeout: 60_000,
    globalSetup: ['./test/setup/embedded.ts'],
    env: { SHIPMATE_TEST_SERVER: 'embedded' },
  },
  {
    name: 'server',
    // Without a real server, what runs on the embedded one is not counted as missing.
    include: needs.server.met ? ['test/**/*.server.test.ts'] : comparing,
    exclude: selfContained,
    testTimeout: 60_000,
    env: { SHIPMATE_TEST_SERVER: 'real' },
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
    // Most tests wait, for processes, servers and intervals: two at once fit one core.
    maxWorkers: Math.max(2, availableParallelism() * 2),
    env: { SHIPMATE_SEED: seed ?? '1', SHIPMATE_SCHEDULES: schedules ?? (seed ? '1' : '20') },
    projects: kinds.map(
      ({ exclude = [], env = {}, ...kind }): TestProjectConfiguration => ({
        extends: true,
        test: { ...kind, env, exclude: [...configDefaults.exclude, ...exclude] },
      }),
    ),
  },
})
