/**
 * Dockerfile.sidecar and docs/sidecar.md say again what sidecar/install/ says: how the agent is started so that it stays small.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { nodeEnvironment, nodeFlags, unset } from '../../../sidecar/install/launch.ts'
import { parseOptions } from '../../../sidecar/options.ts'

const read = (path: string) => readFileSync(join(import.meta.dirname, '../../..', path), 'utf8')
const optionsOf = (argv: string[]) =>
  parseOptions(argv, { POD_NAME: 'db-0', POD_NAMESPACE: 'shop', POD_UID: 'uid-0', SHIPMATE_LIFECYCLE: 'postgres' })
const lines = read('Dockerfile.sidecar').split('\n')
/** What follows the word in the last line that begins with it. */
const last = (word: string) =>
  lines
    .findLast(line => line.startsWith(`${word} `))
    ?.slice(word.length + 1)
    .trim() ?? ''

it('the image is made from node:24-bookworm-slim unless another base is named', () => {
  expect(last('ARG')).toBe('BASE=node:24-bookworm-slim')
  expect(last('FROM')).toBe('$' + '{BASE}')
})

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
  const variables = last('ENV')
    .split(' ')
    .map(variable => variable.split('='))
  expect(Object.fromEntries(variables)).toEqual(nodeEnvironment)
})

it('the image asks for certificates unless it is told otherwise, and is nobody by number', () => {
  expect(optionsOf(JSON.parse(last('CMD')))).toMatchObject({
    command: 'run',
    options: { auth: 'mtls', config: '/etc/shipmate/lifecycle.yaml', stateDir: '/var/lib/shipmate/state' },
  })
  expect(last('USER')).toMatch(/^[1-9]\d*:[1-9]\d*$/)
})

it("the documentation starts the agent in the application's image as install-agent says", () => {
  const examples = [...read('docs/sidecar.md').matchAll(/^```yaml\n(.*?)^```/gms)].map(([, text = '']) => parse(text))
  const [, { initContainers }] = examples
  const [installing, sidecar] = initContainers
  expect(installing.command).toEqual(['shipmate', 'install-agent', '/shipmate'])
  expect(sidecar.command).toEqual([
    ...['/shipmate/shipmate-init', 'supervise', '--'],
    ...['/shipmate/ld.so', '--library-path', '/shipmate/lib', '/shipmate/node'],
    ...nodeFlags,
    ...['/shipmate/agent.cjs', 'sidecar'],
  ])
  const env = Object.fromEntries(sidecar.env.map(({ name, value }: { name: string; value: string }) => [name, value]))
  expect(env).toEqual({ ...nodeEnvironment, ...unset })
  expect(optionsOf(sidecar.args)).toEqual(optionsOf(JSON.parse(last('CMD'))))
})
