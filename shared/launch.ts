/**
 * How the agent is started so that it stays small: Node's flags and the settings of the C library, for the image, for `install-agent`, for injection and for
 * the bench.
 * What each is worth stands in docs/benchmarks.md. The Dockerfile repeats them; a test holds the two together.
 */

/** The agent waits most of its life: it is compiled to no machine code, and keeps its young generation small. */
export const nodeFlags: readonly string[] = [
  '--max-semi-space-size=1',
  '--no-opt',
  '--no-maglev',
  '--no-sparkplug',
  '--regexp-interpret-all',
  '--optimize-for-size',
  '--v8-pool-size=0',
  // All times are in UTC: the tables of time zones stay on disk.
  '--no-icu-timezone-data',
  // sidecar/memory.ts uses it.
  '--expose-gc',
]

/**
 * What an application's image may have set for its own programs, and would hurt Node: libraries for another C library, options for another Node. Actions
 * are given nothing of the agent's environment, so nothing is lost to them.
 */
export const unset: Readonly<Record<string, string>> = { LD_PRELOAD: '', NODE_OPTIONS: '' }

/** One pool of memory instead of one a thread; and what is larger than 16 KiB, as V8's compiler asks for at the start, is given back at once. */
export const nodeEnvironment: Readonly<Record<string, string>> = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '16384',
}

/** How it is started from a folder that `install-agent` filled, up to its own options. @param loader whether Node brings its own */
export function installedCommand(folder: string, { loader }: { readonly loader: boolean }): string[] {
  const node = loader ? [`${folder}/ld.so`, '--library-path', `${folder}/lib`] : []
  return [
    ...[`${folder}/shipmate-init`, 'supervise', '--', ...node, `${folder}/node`],
    ...[...nodeFlags, `${folder}/agent.cjs`, 'sidecar'],
  ]
}
