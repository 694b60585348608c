/**
 * The agent starts, and runs actions with the application's own tools, where there is nothing but busybox: no C library, no Node.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { install, type Launch } from '../../../sidecar/install/install.ts'
import { built, builtAs, notInstallable } from './built.ts'
import { busyboxRoot, noOtherUser, noRoot, type Root } from './root.ts'

const missing = notInstallable ?? noRoot
const skipped = (reason: string | undefined) => (reason ? ` (skipped: ${reason})` : '')

/** Says where it is and who it is, and ends with a result. */
const look = 'ls /; id -u; echo "{\\"result\\":{\\"tools\\":\\"$(busybox true && echo busybox)\\"}}"'
const lifecycle: LifecycleSpec = {
  actions: [
    { name: 'look', exec: { command: ['sh', '-c', look] } },
    {
      name: 'wait',
      exec: { command: ['sh', '-c', 'until [ -e /state/go ]; do sleep 0.02; done; echo done >>/state/effects'] },
    },
  ],
}

/** Installs into /shipmate of the root; the launch is as seen from inside. */
function installInto(root: Root, from = built): Launch {
  const folder = root.at('shipmate')
  const { command, env } = install({ folder, bundle: join(from, 'agent.cjs'), program: process.execPath })
  return { command: command.map(word => word.replace(root.folder, '')), env }
}

describe.skipIf(missing)(`in a root with busybox alone${skipped(missing)}`, { timeout: 60_000 }, () => {
  const users = [
    { name: 'root', uid: 0, isNot: undefined },
    { name: `another user than root${skipped(noOtherUser)}`, uid: 1234, isNot: noOtherUser },
  ]
  it.for(users)('the agent starts as $name and runs an action with busybox', async ({ uid, isNot }, { skip }) => {
    skip(isNot !== undefined, isNot)
    const root = busyboxRoot(lifecycle)
    const agent = root.start(installInto(root), uid)
    await agent.put('first', 'look')
    expect(await agent.ended('first')).toMatchObject({ phase: 'Succeeded', result: { tools: 'busybox' } })
    const [tools, user] = [['bin', 'dev', 'lifecycle.json', 'proc', 'shipmate', 'state'].join('\n'), String(uid)]
    expect(await agent.log('first')).toContain(`${tools}\n${user}\n`)
    expect(await agent.get('/v1/features')).toMatchObject({ features: expect.arrayContaining(['adopt']) })
  })

  it('the agent starts whatever the image has set for its own programs', async () => {
    const root = busyboxRoot(lifecycle)
    const foreign = {
      LD_PRELOAD: '/lib/libjemalloc.so.2',
      NODE_OPTIONS: '--require=/app/tracing.js',
      LD_LIBRARY_PATH: '/lib',
    }
    const agent = root.start(installInto(root), 0, foreign)
    await agent.put('first', 'look')
    expect(await agent.ended('first')).toMatchObject({ phase: 'Succeeded' })
    expect(agent.said.filter(line => !line.startsWith('{'))).toEqual([])
  })

  it('an installed agent installs itself elsewhere', async () => {
    const root = busyboxRoot(lifecycle)
    const { command, env } = installInto(root)
    const node = command.slice(command.indexOf('/shipmate/ld.so'), command.indexOf('sidecar'))
    const { status, stdout, stderr } = root.run([...node, 'install-agent', '/again'], env)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const agent = root.start(JSON.parse(stdout))
    await agent.put('first', 'look')
    expect(await agent.ended('first')).toMatchObject({ phase: 'Succeeded' })
  })

  it('a newer agent is installed over one that runs, which goes on until it is replaced', async () => {
    const root = busyboxRoot(lifecycle)
    const agent = root.start(installInto(root, builtAs('1.0.0')))
    await agent.put('first', 'wait')
    await vi.waitFor(async () => expect(await agent.get('/v1/runs/first')).toMatchObject({ phase: 'Running' }))

    installInto(root, builtAs('2.0.0'))
    expect(await agent.state()).toMatchObject({ version: '1.0.0' })
    const before = await agent.address()
    agent.signal('SIGHUP')
    await vi.waitFor(async () => expect(await agent.address()).not.toBe(before), { timeout: 20_000 })
    expect(await agent.state()).toMatchObject({ version: '2.0.0' })
    expect(await agent.get('/v1/runs/first')).toMatchObject({ phase: 'Running' })

    writeFileSync(root.at('state/go'), '')
    expect(await agent.ended('first')).toMatchObject({ phase: 'Succeeded' })
    expect(readFileSync(root.at('state/effects'), 'utf8')).toBe('done\n')
  })
})
