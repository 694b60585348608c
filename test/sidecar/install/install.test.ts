/**
 * What `install-agent` leaves in a folder, done once, again, over an older one and over one that was cut off; and its one sentence where it cannot.
 */
import { execFile, execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { nodeFlags } from '../../../shared/launch.ts'
import { install, type Launch } from '../../../sidecar/install/install.ts'
import { noVolumes, volume } from '../disk/volume.ts'
import { built, builtAs, notInstallable, temporary } from './built.ts'
import { writeElf } from './elf-file.ts'

const skipped = (reason: string | undefined) => (reason ? ` (skipped: ${reason})` : '')
const installFrom = (from: string, folder: string, program = process.execPath) =>
  install({ folder, bundle: join(from, 'agent.cjs'), program })

/** Every file in the folder by its path, with what tells whether it was written anew. */
function inodes(folder: string): Record<string, number> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
  return Object.fromEntries(names.map(name => [name, statSync(join(folder, name)).ino]))
}

/** What the agent says of itself when it is started as written, without shipmate-init. */
async function usage({ command, env }: Launch): Promise<string> {
  const [file = '', ...args] = command.slice(command.indexOf('--') + 1)
  return (await promisify(execFile)(file, [...args, '--help'], { env })).stdout
}

/** Runs the command as a person does; rejects with its exit code and what it has said, if that is not 0. */
const call = (argv: string[]) =>
  promisify(execFile)(process.execPath, [join(built, 'agent.cjs'), 'install-agent', ...argv])

describe.skipIf(notInstallable)(`install-agent${skipped(notInstallable)}`, { timeout: 60_000 }, () => {
  it('copies Node, its loader and libraries, the agent and shipmate-init, and says how it is started', async () => {
    const folder = join(temporary(), 'new', 'shipmate')
    const launch = installFrom(built, folder)
    expect(readdirSync(folder).sort()).toEqual(['agent.cjs', 'command.json', 'ld.so', 'lib', 'node', 'shipmate-init'])
    expect(readdirSync(join(folder, 'lib'))).toContain('libstdc++.so.6')
    expect(readlinkSync(join(folder, 'ld.so'))).toMatch(/^lib\/ld-/)
    expect(launch.command).toEqual([
      join(folder, 'shipmate-init'),
      'supervise',
      '--',
      join(folder, 'ld.so'),
      '--library-path',
      join(folder, 'lib'),
      join(folder, 'node'),
      ...nodeFlags,
      join(folder, 'agent.cjs'),
      'sidecar',
    ])
    expect(JSON.parse(readFileSync(join(folder, 'command.json'), 'utf8'))).toEqual(launch)
    expect(await usage(launch)).toContain('Usage: shipmate sidecar')
  })

  it('leaves everything open to every user, whatever the umask', () => {
    const umask = process.umask(0o077)
    onTestFinished(() => void process.umask(umask))
    const folder = join(temporary(), 'a', 'b')
    installFrom(built, folder)
    const open = (path: string, mode: number) => expect([path, statSync(path).mode & mode]).toEqual([path, mode])
    for (const path of ['..', '.', 'lib', 'node', 'shipmate-init', 'ld.so']) open(join(folder, path), 0o555)
    for (const path of ['agent.cjs', 'command.json', 'lib/libstdc++.so.6']) open(join(folder, path), 0o444)
  })

  it('leaves folders that were there before as they were', () => {
    const own = temporary()
    mkdirSync(join(own, 'closed'), { mode: 0o700 })
    for (const folder of [join(own, 'closed'), join(own, 'closed', 'new')]) installFrom(built, folder)
    expect(statSync(own).mode & 0o777).toBe(0o700)
    expect(statSync(join(own, 'closed')).mode & 0o777).toBe(0o700)
    expect(statSync(join(own, 'closed', 'new')).mode & 0o777).toBe(0o755)
  })

  it('done again changes nothing', () => {
    const folder = temporary()
    const launch = installFrom(built, folder)
    const { 'command.json': _, 'ld.so': __, ...before } = inodes(folder)
    expect(installFrom(built, folder)).toEqual(launch)
    expect(inodes(folder)).toMatchObject(before)
  })

  it('over an older one replaces what has changed, and that in one move', () => {
    const folder = temporary()
    installFrom(builtAs('1.0.0'), folder)
    const before = inodes(folder)
    installFrom(built, folder)
    const after = inodes(folder)
    expect(after['agent.cjs']).not.toBe(before['agent.cjs'])
    expect(after['node']).toBe(before['node'])
    expect(readFileSync(join(folder, 'agent.cjs'), 'utf8')).toBe(readFileSync(join(built, 'agent.cjs'), 'utf8'))
  })

  it('over one that was cut off puts everything right, and leaves nothing of it behind', async () => {
    const folder = temporary()
    const launch = installFrom(built, folder)
    rmSync(join(folder, 'command.json'))
    rmSync(join(folder, 'agent.cjs'))
    truncateSync(join(folder, 'node'), 1_000_000)
    writeFileSync(join(folder, 'lib/libstdc++.so.6'), '')
    chmodSync(join(folder, 'lib'), 0o700)
    chmodSync(join(folder, 'shipmate-init'), 0o600)
    for (const place of ['.', 'lib'])
      writeFileSync(join(folder, place, '.0b0ee4c3-6f0c-4a4e-9d62-6a0f6dbb3f1b.new'), 'half')

    expect(installFrom(built, folder)).toEqual(launch)
    expect(readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.new'))).toEqual([])
    expect(statSync(join(folder, 'lib')).mode & 0o777).toBe(0o755)
    expect(statSync(join(folder, 'shipmate-init')).mode & 0o777).toBe(0o755)
    expect(await usage(launch)).toContain('Usage: shipmate sidecar')
  })

  it('by several at once ends well for one at least, and leaves it whole', async () => {
    const folder = temporary()
    const all = await Promise.allSettled([call([folder]), call([folder]), call([folder])])
    expect(all).toContainEqual(expect.objectContaining({ status: 'fulfilled' }))
    expect(await usage(JSON.parse(readFileSync(join(folder, 'command.json'), 'utf8')))).toContain(
      'Usage: shipmate sidecar',
    )
    for (const one of all) if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 1 })
  })

  it('is a command: it prints what it has written, and answers 0', async () => {
    const folder = temporary()
    const { stdout, stderr } = await call([folder])
    expect(stderr).toBe('')
    expect(JSON.parse(stdout)).toEqual(JSON.parse(readFileSync(join(folder, 'command.json'), 'utf8')))
  })

  it.each([
    { argv: [], says: 'DIR is missing' },
    { argv: ['a', 'b'], says: 'one folder, not 2' },
    { argv: ['--into', 'a'], says: 'unknown option "--into"' },
  ])('called as $argv answers 2: $says', async ({ argv, says }) => {
    await expect(call(argv)).rejects.toMatchObject({
      code: 2,
      stderr: `shipmate install-agent: ${says}: see shipmate install-agent --help.\n`,
    })
  })

  it('answers 1 with one line where it cannot, and has not begun', async () => {
    const folder = join(temporary(), 'file')
    writeFileSync(folder, 'mine')
    await expect(call([folder])).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^shipmate install-agent: the agent cannot be copied to .*\/file: ENOTDIR: [^\n]*\n$/,
      ),
    })
    expect(readFileSync(folder, 'utf8')).toBe('mine')
  })
})

describe.skipIf(notInstallable)(
  `where it cannot, one sentence says why${skipped(notInstallable)}`,
  { timeout: 60_000 },
  () => {
    /** A copy of what is built, to break. */
    function breakable(): string {
      const folder = temporary()
      for (const name of ['agent.cjs', 'shipmate-init']) copyFileSync(join(built, name), join(folder, name))
      return folder
    }

    it('shipmate-init is not there', () => {
      const from = breakable()
      rmSync(join(from, 'shipmate-init'))
      const folder = join(temporary(), 'to')
      expect(() => installFrom(from, folder)).toThrow(
        `${from}/shipmate-init is not there: it is built with a C compiler, by npm run build, and is in the sidecar's image`,
      )
      expect(existsSync(folder)).toBe(false)
    })

    it('shipmate-init needs a C library', () => {
      const from = breakable()
      const machine = process.arch === 'arm64' ? 183 : 62
      writeElf(join(from, 'shipmate-init'), { interpreter: '/lib64/ld-linux-x86-64.so.2', machine })
      expect(() => installFrom(from, join(temporary(), 'to'))).toThrow(
        `${from}/shipmate-init is not statically linked, so it would not start in another image: build it where there is a static C library`,
      )
    })

    it('shipmate-init is for another processor, or no program', () => {
      const from = breakable()
      const why = `${from}/shipmate-init is no program for the processor that ${process.execPath} is for: build it on this machine`
      writeElf(join(from, 'shipmate-init'), { machine: 8 })
      expect(() => installFrom(from, join(temporary(), 'to'))).toThrow(why)
      writeFileSync(join(from, 'shipmate-init'), '#!/bin/sh\n')
      expect(() => installFrom(from, join(temporary(), 'to'))).toThrow(why)
    })

    it('Node lacks a library', () => {
      const node = writeElf(join(temporary(), 'node'), {
        interpreter: '/lib64/ld-linux-x86-64.so.2',
        needed: ['libshipmate-missing.so.1'],
      })
      const folder = join(temporary(), 'to')
      expect(() => installFrom(built, folder, node)).toThrow(
        `libshipmate-missing.so.1, which ${node} needs, is in none of `,
      )
      expect(existsSync(folder)).toBe(false)
    })

    it('Node does not start from there', () => {
      const broken = join(temporary(), 'node')
      copyFileSync(process.execPath, broken)
      truncateSync(broken, 1_000_000)
      const folder = join(temporary(), 'to')
      expect(() => installFrom(built, folder, broken)).toThrow(
        new RegExp(`^Node was copied, but does not start from ${folder}: .+`),
      )
      expect(existsSync(join(folder, 'command.json'))).toBe(false)
    })

    it('the folder cannot be made', () => {
      const file = join(temporary(), 'file')
      writeFileSync(file, '')
      expect(() => installFrom(built, join(file, 'shipmate'))).toThrow(
        `the agent cannot be copied to ${file}/shipmate: ENOTDIR: not a directory`,
      )
    })

    const isRoot = process.getuid?.() === 0
    it.skipIf(isRoot)(
      `the folder may not be written to${skipped(isRoot ? 'root may write anywhere' : undefined)}`,
      () => {
        const folder = temporary()
        chmodSync(folder, 0o555)
        expect(() => installFrom(built, folder)).toThrow(
          `the agent cannot be copied to ${folder}: EACCES: permission denied`,
        )
      },
    )

    describe.skipIf(noVolumes)(`on a volume${skipped(noVolumes)}`, () => {
      it('that is read-only', () => {
        const { path } = volume()
        execFileSync('mount', ['-o', 'remount,ro', path])
        expect(() => installFrom(built, join(path, 'shipmate'))).toThrow(
          `the agent cannot be copied to ${path}/shipmate: EROFS: read-only file system`,
        )
      })

      it('that is too small, and nothing half is left there', () => {
        const { path } = volume(16 * 1024 * 1024)
        expect(() => installFrom(built, path)).toThrow(`the agent cannot be copied to ${path}: ENOSPC: no space left`)
        expect(readdirSync(path).sort()).toEqual(['ld.so', 'lib'])
      })

      it('from which nothing may be executed', () => {
        const { path } = volume(512 * 1024 * 1024)
        execFileSync('mount', ['-o', 'remount,noexec', path])
        const folder = join(path, 'shipmate')
        mkdirSync(folder)
        expect(() => installFrom(built, folder)).toThrow(
          `${folder}/ld.so was copied, but cannot be executed there (spawnSync ${folder}/ld.so EACCES): is that a volume mounted noexec?`,
        )
        expect(existsSync(join(folder, 'command.json'))).toBe(false)
      })
    })

    it('the system is no Linux', () => {
      const platform = Object.getOwnPropertyDescriptor(process, 'platform') ?? {}
      onTestFinished(() => void Object.defineProperty(process, 'platform', platform))
      Object.defineProperty(process, 'platform', { ...platform, value: 'darwin' })
      expect(() => installFrom(built, '/nowhere')).toThrow(
        'the agent is installed on Linux, for containers; this is darwin',
      )
    })
  },
)
