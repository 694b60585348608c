/**
 * How the controller is started so that thousands of connections fit: settings of the C library, for an image or a Deployment, and for the bench.
 * What they are worth stands in docs/benchmarks.md.
 */

/**
 * Node takes a buffer of 64 KiB for what is read from a TLS connection, keeps it, and uses the first pages. Each gets pages of its own (what is larger
 * than 32 KiB, where the heap has no room at its end), so that the rest of it is never touched; else it comes to lie on memory that was used before,
 * and all of it counts. And one pool of memory instead of one a thread.
 */
export const nodeEnvironment: Readonly<Record<string, string>> = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '32768',
  MALLOC_TOP_PAD_: '16384',
  MALLOC_TRIM_THRESHOLD_: '32768',
}
