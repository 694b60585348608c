import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { faulty, folder, hasCompiler, lives, shell, start, until, type Wrapper } from './wrappers.ts'

const wrapper: Wrapper = { name: 'faulty', kind: 'c', isThere: hasCompiler, argv: [faulty, 'exec'] }
type Stands = { executed: 'no' | 'yes' | 'perhaps'; claim: boolean; exit: boolean }

const points: Record<string, Stands> = {
  'claim.before': { executed: 'no', claim: false, exit: false },
  'claim.created': { executed: 'no', claim: true, exit: false },
  'claim.synced': { executed: 'no', claim: true, exit: false },
  'exitnew.synced': { executed: 'no', claim: true, exit: false },
  forked: { executed: 'no', claim: true, exit: false },
  'child.written': { executed: 'no', claim: true, exit: false },
  released: { executed: 'perhaps', claim: true, exit: false },
  ended: { executed: 'yes', claim: true, exit: false },
  'exit.written': { executed: 'yes', claim: true, exit: false },
  'exit.synced': { executed: 'yes', claim: true, exit: false },
  'exit.renamed': { executed: 'yes', claim: true, exit: true },
  'exit.done': { executed: 'yes', claim: true, exit: true },
}

describe.skipIf(!hasCompiler)('a wrapper that is killed', () => {
  it.each(Object.entries(points))(
    'at %s leaves %j, and the next one executes nothing that was claimed',
    async (point, stands) => {
      const dir = folder()
      const command = shell('echo x >> "$1"; [ -z "$SHIPMATE_FAULT" ]', join(dir, 'done'))
      const first = start(wrapper, command, { dir, env: { SHIPMATE_FAULT: point } })
      expect(await first.ended).toMatchObject({ code: null, signal: 'SIGKILL' })
      // The command dies with it.
      const child = first.read('child')
      if (child) await until(() => !lives(JSON.parse(child).pid))
      if (stands.executed !== 'perhaps') expect(first.read('done')).toBe(stands.executed === 'yes' ? 'x\n' : undefined)
      expect(readdirSync(dir).includes('exit')).toBe(stands.exit)
      if (stands.claim)
        expect(first.json('claim')).toMatchObject({ by: 'wrapper', pid: first.pid, start: expect.any(Number) })
      else expect(first.read('claim')).toBeUndefined()
      if (stands.exit) expect(first.json('exit')).toMatchObject({ cause: 'exited', code: 0 })

      const before = first.read('done')
      const second = start(wrapper, command, { dir })
      expect(await second.ended).toMatchObject({ code: stands.claim ? 3 : 0 })
      expect(second.read('done')).toBe(stands.claim ? before : 'x\n')
    },
  )
})
