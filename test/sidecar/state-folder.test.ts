import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createLog } from '../../shared/log.ts'
import { OptionsError } from '../../sidecar/server/servers.ts'
import { openStateFolder } from '../../sidecar/state-folder.ts'
import { newFolder } from '../fixtures/running-agent.ts'

const { logger: log } = createLog({ level: 'silent' })

describe('the state folder', () => {
  it('is made with what leads to it, for its owner alone', async () => {
    const folder = join(newFolder(), 'a/b/c')
    await openStateFolder(folder, log)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
  })

  it('may be there already, and is kept from others', async () => {
    const folder = join(newFolder(), 'a')
    mkdirSync(folder, { mode: 0o755 })
    await Promise.all([openStateFolder(folder, log), openStateFolder(folder, log)])
    expect(statSync(folder).mode & 0o777).toBe(0o700)
  })

  it('that is a file, or in one, is refused by the name of its flag', async () => {
    const file = join(newFolder(), 'a')
    writeFileSync(file, '')
    const refused = openStateFolder(file, log)
    await expect(refused).rejects.toBeInstanceOf(OptionsError)
    await expect(refused).rejects.toThrow(`--state-dir is "${file}", which is a file; it must be a folder`)
    await expect(openStateFolder(join(file, 'b/c'), log)).rejects.toThrow(
      `--state-dir is "${join(file, 'b/c')}", and a part of that is a file`,
    )
  })

  it.runIf(existsSync('/proc/self'))('that cannot be made is refused, not tried for ever', async () => {
    await expect(openStateFolder('/proc/x/y', log)).rejects.toThrow(
      /^--state-dir is "\/proc\/x\/y", which cannot be made: ENOENT/,
    )
  })
})
