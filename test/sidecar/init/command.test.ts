/**
 * The command line of the sidecar's image, where there is no shell: shipmate-init by the name `shipmate`.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { programs } from './programs.ts'
import { folder } from './wrappers.ts'

for (const { name, file, isThere } of programs) {
  describe.skipIf(!isThere)(`shipmate by ${name}`, () => {
    /** As in the image: the program and the bundle in one folder, a link in another. */
    function installed(bundle: string): string {
      const root = folder()
      const [own, bin] = [join(root, 'opt/shipmate'), join(root, 'bin')]
      for (const path of [own, bin]) mkdirSync(path, { recursive: true })
      copyFileSync(file, join(own, 'shipmate-init'))
      writeFileSync(join(own, 'agent.cjs'), bundle)
      symlinkSync(join(own, 'shipmate-init'), join(bin, 'shipmate'))
      return bin
    }
    /** By its name alone, found in the path, as a container's command is. */
    const call = (args: string[], PATH: string) =>
      spawnSync('shipmate', args, { env: { PATH, LANG: 'x' }, encoding: 'utf8' })
    const path = (bin: string) => [bin, dirname(process.execPath)].join(':')

    it('starts the bundle beside it with the arguments as they are, and ends as that does', () => {
      const bin = installed('console.log(JSON.stringify([__filename, ...process.argv.slice(2)])); process.exitCode = 7')
      const args = ['install-agent', '', 'a b', '$(x)', '--', '-']
      const { status, stdout } = call(args, path(bin))
      expect(JSON.parse(stdout)).toEqual([join(dirname(bin), 'opt/shipmate/agent.cjs'), ...args])
      expect(status).toBe(7)
    })

    it('gives it the environment, and lets signals reach it', () => {
      const bin = installed(
        "console.log(process.env.LANG, process.listenerCount('SIGTERM')); process.kill(process.pid, 'SIGTERM')",
      )
      expect(call([], path(bin))).toMatchObject({ stdout: 'x 0\n', signal: 'SIGTERM' })
    })

    it('says that there is no Node', () => {
      const bin = installed('')
      const { status, stderr } = call(['sidecar'], bin)
      expect({ status, said: JSON.parse(stderr) }).toMatchObject({
        status: 1,
        said: { level: 'error', msg: 'node cannot be started: ENOENT' },
      })
    })
  })
}
