/**
 * What both images promise in their Dockerfiles: one build for both, nobody by number, nothing that needs a shell, labels that are true.
 */

import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { define } from '../../cli/commands/controller.ts'
import { nodeEnvironment } from '../../controller/app/launch.ts'
import { ports } from '../../deploy/source/names.ts'
import manifest from '../../package.json' with { type: 'json' }
import { images } from '../../shared/images.ts'
import { dockerfile } from './dockerfile.ts'

const files = { sidecar: dockerfile('Dockerfile.sidecar'), controller: dockerfile('Dockerfile.controller') }

it('both are built by the same words, so that it is done once', () => {
  const built = ({ text }: { text: string }) => text.slice(text.indexOf('\nFROM'), text.indexOf('\nFROM build AS root'))
  expect(built(files.sidecar)).toContain('RUN npm ci')
  expect(built(files.sidecar)).toBe(built(files.controller))
})

describe.each(Object.entries(files))('Dockerfile.%s', (name, { text, last, labels, variables }) => {
  const image = text.slice(text.lastIndexOf('\nFROM'))

  it('is made from node:24-bookworm-slim unless another base is named', () => {
    expect(text.match(/^ARG BASE=.*$/m)?.[0]).toBe('ARG BASE=node:24-bookworm-slim')
    expect(last('FROM')).toBe('$' + '{BASE}')
  })

  it('runs nothing in its last stage, and starts without a shell', () => {
    expect(image).not.toMatch(/^(RUN|SHELL|HEALTHCHECK)/m)
    expect(JSON.parse(last('ENTRYPOINT'))).not.toContain('sh')
  })

  it('is nobody by number', () => {
    expect(last('USER')).toMatch(/^[1-9]\d*:[1-9]\d*$/)
  })

  it('finds Node where images of Node have it', () => {
    expect(variables['PATH']?.split(':')).toEqual(expect.arrayContaining(['/usr/local/bin', '/usr/bin', '/nodejs/bin']))
  })

  it('says what it is', () => {
    expect(labels).toMatchObject({
      'org.opencontainers.image.title': images[name as keyof typeof images],
      'org.opencontainers.image.version': manifest.version,
      'org.opencontainers.image.licenses': manifest.license,
      'org.opencontainers.image.revision': '$' + '{REVISION}',
    })
  })

  it('has what is in it written down', () => {
    expect(text).toMatch(/cp \S*\.cdx\.json sbom\.cdx\.json/)
    expect(text).toContain('THIRD-PARTY-LICENSES.txt')
  })

  it('has the time of its files given', () => {
    expect(text).toContain('touch -h -d "@$SOURCE_DATE_EPOCH"')
  })
})

it("the controller's image has the settings that thousands of connections need", () => {
  expect(files.controller.variables).toMatchObject(nodeEnvironment)
})

it("the controller's image names the ports of its Deployment", () => {
  expect(files.controller.last('EXPOSE').split(' ').map(Number)).toEqual(Object.values(ports))
})

it('the Deployment asks for options that the controller has', async () => {
  const { plainObjects } = await import('../../deploy/source/plain.ts')
  const { defaults } = await import('../../deploy/source/values.ts')
  const values = { ...defaults, shards: 2, watchNamespaces: ['a', 'b'], pullSecrets: ['s'] }
  const command = new Command().exitOverride()
  define(command)
  // Only how it is called: nothing starts.
  command.action(() => undefined)
  const deployments = (plainObjects(values, ['controller']) as { kind: string; spec: never }[]).filter(
    ({ kind }) => kind === 'Deployment',
  )
  expect(deployments).toHaveLength(2)
  for (const { spec } of deployments as { spec: { template: { spec: { containers: { args: string[] }[] } } } }[]) {
    await command.parseAsync(spec.template.spec.containers[0]?.args ?? [], { from: 'user' })
    expect(command.opts()).toMatchObject({
      watchNamespace: expect.arrayContaining(['a', 'b']),
      metricsAuth: true,
      port: '8081',
    })
  }
})
