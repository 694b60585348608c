import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { makeNested } from '../../../devcluster/node/root.ts'

test('a volume that is mounted inside one that is read-only has its place there, and nothing else is made', () => {
  const folder = mkdtempSync(join(tmpdir(), 'shipmate-root-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const bind = (source: string, target: string, isReadOnly = false, isFile = false) => ({
    ...{ source: join(folder, source), target, isReadOnly, isFile },
  })
  makeNested([
    bind('config', '/etc/app', true),
    bind('tls', '/etc/app/tls', true),
    bind('file', '/etc/app/extra/one.conf', true, true),
    bind('data', '/data'),
    bind('more', '/data/more'),
  ])
  expect(statSync(join(folder, 'config/tls')).isDirectory()).toBe(true)
  expect(statSync(join(folder, 'config/extra/one.conf')).isFile()).toBe(true)
  expect(existsSync(join(folder, 'data'))).toBe(false)
})
