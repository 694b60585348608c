/**
 * The check of imports finds each way of pointing the wrong way, and lets everything else pass.
 */
import { describe, expect, test } from 'vitest'
import { check } from '../../tools/imports.ts'

describe('imports point one way', () => {
  test.each([
    ['shared/a.ts', '../sidecar/b.ts'],
    ['shared/a.ts', '../controller/kube/b.ts'],
    ['shared/a.ts', '../devcluster/b.ts'],
    ['sidecar/a.ts', '../controller/kube/b.ts'],
    ['controller/kube/a.ts', '../runtime/b.ts'],
    ['controller/kube/a.ts', '../../sidecar/b.ts'],
    ['controller/runtime/a.ts', '../toolkit/b.ts'],
    ['controller/toolkit/deep/a.ts', '../../app/b.ts'],
    ['controller/app/a.ts', '../webhook/b.ts'],
    ['controller/app/a.ts', '../../cli/b.ts'],
    ['controller/webhook/a.ts', '../../devcluster/b.ts'],
    ['devcluster/a.ts', '../controller/toolkit/b.ts'],
    ['devcluster/a.ts', '../sidecar/b.ts'],
    ['controller/runtime/a.ts', '../../test/b.ts'],
    ['controller/runtime/a.ts', '../../build.ts'],
    ['cli/a.ts', '../test/b.ts'],
    ['controller/kube/a.ts', '../new/b.ts'],
  ])('%s may not import %s', (path, target) => {
    for (const statement of [
      `import { b } from '${target}'`,
      `import '${target}'`,
      `import type { B } from '${target}'`,
      `export * from '${target}'`,
      `export type { B } from '${target}'`,
      `const { b } = await import('${target}')`,
      `let b: import('${target}').B`,
    ]) {
      const text = `// A file.\nusing x = y\nfor await (const z of x) {\n}\n${statement}\n`
      expect(check({ [path]: text }), statement).toEqual([expect.stringContaining(`${path}:5: `)])
    }
  })

  test.each([
    ['shared/a.ts', './b.ts'],
    ['shared/version.ts', '../package.json'],
    ['sidecar/a.ts', '../shared/b.ts'],
    ['controller/kube/a.ts', '../../shared/b.ts'],
    ['controller/runtime/a.ts', '../kube/b.ts'],
    ['controller/toolkit/a.ts', '../runtime/b.ts'],
    ['controller/app/a.ts', '../toolkit/b.ts'],
    ['controller/webhook/a.ts', '../app/b.ts'],
    ['devcluster/a.ts', '../controller/runtime/b.ts'],
    ['cli/command.ts', '../devcluster/b.ts'],
    ['cli/main.ts', './command.ts'],
    ['test/a.ts', '../cli/b.ts'],
    ['bench/a.ts', '../controller/app/b.ts'],
    ['examples/x/a.ts', '../../test/b.ts'],
    ['controller/kube/a.ts', 'undici'],
    ['controller/kube/a.ts', 'node:fs'],
  ])('%s may import %s', (path, target) => {
    expect(check({ [path]: `import { b } from '${target}'` })).toEqual([])
  })

  test('a sentence says where, who may import whom, and what was imported', () => {
    expect(check({ 'controller/kube/a.ts': `\n\nimport { b } from '../runtime/b.ts'` })).toEqual([
      `controller/kube/a.ts:3: controller/kube may import shared, not '../runtime/b.ts'`,
    ])
  })

  test('what only looks like an import is none', () => {
    expect(check({ 'shared/a.ts': `// import '../cli/main.ts'\nconst text = "import '../cli/main.ts'"` })).toEqual([])
  })

  test('a file in a folder without a rule is named', () => {
    expect(check({ 'controller/a.ts': '', 'helpers/a.ts': '' })).toEqual([
      expect.stringContaining('controller/a.ts: stands in no folder'),
      expect.stringContaining('helpers/a.ts: stands in no folder'),
    ])
  })

  test('the package is not imported by its own name', () => {
    expect(check({ 'controller/app/a.ts': `import 'shipmate/kube'` })).toHaveLength(1)
    expect(check({ 'examples/a.ts': `import 'shipmate/kube'` })).toEqual([])
  })
})

describe('the command line loads its commands lazily', () => {
  const command = `import { run } from '../controller/app/run.ts'`

  test('what starts with it may not import them directly, nor through another file', () => {
    expect(check({ 'cli/main.ts': command })).toHaveLength(1)
    expect(check({ 'cli/main.ts': `import './command.ts'`, 'cli/command.ts': command })).toEqual([
      expect.stringContaining('cli/command.ts:1: '),
    ])
  })

  test('what is loaded when asked for may', () => {
    expect(check({ 'cli/main.ts': `await import('./command.ts')`, 'cli/command.ts': command })).toEqual([])
    expect(check({ 'cli/main.ts': `await import('../controller/app/run.ts')` })).toEqual([])
    expect(check({ 'cli/main.ts': `import type { Run } from '../controller/app/run.ts'` })).toEqual([])
  })

  test('shared may be imported by all of it', () => {
    expect(check({ 'cli/main.ts': `import { log } from '../shared/log.ts'` })).toEqual([])
  })
})

describe('@kubernetes/client-node', () => {
  const code = `import { KubeConfig } from '@kubernetes/client-node/dist/config.js'`

  test.each([
    code,
    `import { V1Pod } from '@kubernetes/client-node'`,
    `import { type V1Pod } from '@kubernetes/client-node'`,
    `export * from '@kubernetes/client-node'`,
    `await import('@kubernetes/client-node')`,
  ])('is not loaded by %s', statement => {
    expect(check({ 'controller/kube/client.ts': statement })).toHaveLength(1)
    expect(check({ 'cli/command.ts': statement })).toHaveLength(1)
  })

  test.each([
    `import type { V1Pod } from '@kubernetes/client-node'`,
    `export type { V1Pod } from '@kubernetes/client-node'`,
    `type Pod = import('@kubernetes/client-node').V1Pod`,
  ])('gives its types by %s', statement => {
    expect(check({ 'controller/kube/client.ts': statement })).toEqual([])
  })

  test.each(['configfile', 'kubeconfig'])('is loaded by controller/kube/%s.ts', name => {
    expect(check({ [`controller/kube/${name}.ts`]: code })).toEqual([])
  })

  test('is loaded by tests and benchmarks as they please', () => {
    expect(check({ 'bench/widget/informers.ts': code, 'test/a.test.ts': code })).toEqual([])
  })
})
