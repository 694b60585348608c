// Loaded before a program (node --require): at SIGUSR2 it writes what V8 holds into the file that BENCH_HEAP names.
'use strict'
process.on('SIGUSR2', () => {
  const { getHeapStatistics } = require('node:v8')
  const { renameSync, writeFileSync } = require('node:fs')
  const { total_physical_size: heap, malloced_memory: malloced } = getHeapStatistics()
  const { external } = process.memoryUsage()
  const file = process.env.BENCH_HEAP
  writeFileSync(`${file}.new`, JSON.stringify({ heap: heap / 1e6, malloced: malloced / 1e6, external: external / 1e6 }))
  renameSync(`${file}.new`, file)
})
