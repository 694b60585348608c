import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { blocksOf, reader } from '../fixtures/documented.ts'

const textOf = (path: string) => readFileSync(join(import.meta.dirname, '../..', path), 'utf8')
const missing = ['bash', 'curl', 'openssl'].filter(tool => spawnSync(tool, ['--version']).error !== undefined)
const need = missing.length > 0 ? ` (skipped: there is no ${missing.join(', no ')})` : ''
const longest = 60_000

describe.skipIf(missing.length > 0)(`what is documented of the sidecar${need}`, () => {
  test.each([
    ['README.md', 'Try the sidecar, without a cluster', '/tmp/orders'],
    ['docs/sidecar-http.md', 'With `--auth none`', '/tmp/demo'],
    ['docs/sidecar-http.md', 'With `--auth token`', '/tmp/demo'],
    ['docs/sidecar-http.md', 'With `--auth mtls`', '/tmp/demo'],
  ])('works as %s says: %s', { timeout: longest }, async (page, heading, place) => {
    const { start, follow } = await reader(place)
    const [first = '', ...others] = blocksOf(textOf(page), heading)
    expect(others.length).toBeGreaterThan(0)
    await start(first)
    for (const block of others) await follow(block)
  })
})
