/**
 * `shipmate images`: what to mirror, and nothing else.
 */
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { shipmate } from './shipmate.ts'

test('lists both images, where they are by default', async () => {
  const { version } = manifest
  expect(await shipmate(['images'])).toEqual({
    status: 0,
    stdout: `registry.shipmate.dev/shipmate-controller:${version}\nregistry.shipmate.dev/shipmate-sidecar:${version}\n`,
    stderr: '',
  })
})

test.each([
  ['mirror.example.com:5000/a/b', 'mirror.example.com:5000/a/b/'],
  ['mirror.example.com/', 'mirror.example.com/'],
  ['', ''],
])('lists them as they are called in %j', async (registry, before) => {
  const { stdout } = await shipmate(['images', '--registry', registry, '--tag', '1.2.3'])
  expect(stdout).toBe(`${before}shipmate-controller:1.2.3\n${before}shipmate-sidecar:1.2.3\n`)
})
