/**
 * Dockerfile.sidecar and docs/inject.md say again what shared/launch.ts says: how the agent is started so that it stays small.
 */
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { nodeEnvironment, nodeFlags, unset } from '../../shared/launch.ts'
import { parseOptions } from '../../sidecar/options.ts'
import { dockerfile, read } from './dockerfile.ts'

const optionsOf = (argv: string[]) =>
  parseOptions(argv, { POD_NAME: 'db-0', POD_NAMESPACE: 'shop', POD_UID: 'uid-0', SHIPMATE_LIFECYCLE: 'postgres' })
const { last, variables } = dockerfile('Dockerfile.sidecar')

it('the image starts the agent as install-agent does', () => {
  const [agent, word] = ['/opt/shipmate/agent.cjs', 'sidecar']
  expect(JSON.parse(last('ENTRYPOINT'))).toEqual([
    '/opt/shipmate/shipmate-init',
    'supervise',
    '--',
    'node',
    ...nodeFlags,
    agent,
    word,
  ])
  expect(variables).toMatchObject(nodeEnvironment)
})

it('the image asks for certificates unless it is told otherwise', () => {
  expect(optionsOf(JSON.parse(last('CMD')))).toMatchObject({
    command: 'run',
    options: { auth: 'mtls', config: '/etc/shipmate/lifecycle/lifecycle.yaml', stateDir: '/var/lib/shipmate/state' },
  })
})

it("the documentation starts the agent in the application's image as install-agent says", () => {
  const [, text = ''] = /### With the application's image\n.*?^```yaml\n(.*?)^```/ms.exec(read('docs/inject.md')) ?? []
  const [installing, sidecar] = parse(text).spec.initContainers
  expect(installing.command).toEqual(['shipmate', 'install-agent', '/shipmate'])
  expect(sidecar.command).toEqual([
    ...['/shipmate/shipmate-init', 'supervise', '--'],
    ...['/shipmate/ld.so', '--library-path', '/shipmate/lib', '/shipmate/node'],
    ...nodeFlags,
    ...['/shipmate/agent.cjs', 'sidecar'],
  ])
  const env = Object.fromEntries(sidecar.env.map(({ name, value }: { name: string; value: string }) => [name, value]))
  expect(env).toMatchObject({ ...nodeEnvironment, ...unset })
  expect(optionsOf(sidecar.args)).toEqual(optionsOf(JSON.parse(last('CMD'))))
})
