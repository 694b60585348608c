/**
 * What becomes of a file's text: what is added is there, and everything else is where it was, byte for byte.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { injectTexts, type Wishes } from '../../../cli/inject/text.ts'
import { inject } from '../../../controller/webhook/inject/inject.ts'
import { cases, settings } from '../../webhook/inject/pods.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)
const numRuns = Number(process.env.SHIPMATE_SCHEDULES ?? 20)
const fixture = (name: string) => readFileSync(join(import.meta.dirname, name), 'utf8')

function run(text: string, wishes: Partial<Wishes> = {}) {
  const { texts, ...rest } = injectTexts([{ file: 'a.yaml', text }], [], { ...settings, ...wishes })
  return { text: texts[0], ...rest }
}
/** Whether every line of a text is in another one, in their order. */
function isWithin(lines: readonly string[], others: readonly string[]): boolean {
  let at = 0
  for (const line of others) if (line === lines[at]) at++
  return at === lines.length
}

describe('a file of several documents, with comments', () => {
  const before = fixture('orders.yaml')

  it('becomes orders.injected.yaml', () => {
    const { text, problems, injected } = run(before)
    expect({ problems, injected }).toEqual({ problems: [], injected: 1 })
    expect(text).toBe(fixture('orders.injected.yaml'))
  })

  it('has every line that it had, but for a container in brackets that gets its hook', () => {
    const { text = '' } = run(before)
    const lines = before.split('\n').filter(line => !line.includes('{name: exporter'))
    expect(isWithin(lines, text.split('\n'))).toBe(true)
    expect(text).toContain(
      '- {name: exporter, image: exporter, lifecycle: {preStop: {httpGet: {path: /prestop, port: 7080}}}}\n',
    )
  })

  it('done again changes nothing', () => {
    const { text = '' } = run(before)
    expect(run(text)).toMatchObject({ text, injected: 0 })
  })

  it('is brought up to date in place', () => {
    const older = run(before, { version: '0.0.9', image: 'old:1', pullSecrets: ['x'] }).text ?? ''
    const newer = run(older, { pullSecrets: ['x'] }).text
    expect(newer).toBe(run(before, { pullSecrets: ['x'] }).text)
  })

  it('follows its annotations when they change', () => {
    const { text = '' } = run(before)
    const asked = text.replace(
      '        shipmate.dev/app:',
      '        shipmate.dev/native-sidecar: "false"\n        shipmate.dev/app:',
    )
    const plain = run(asked).text ?? ''
    const { spec } = parseAllDocuments(plain)[1]?.toJS().spec.template ?? {}
    expect(spec.containers.map(({ name }: { name: string }) => name)).toEqual([
      'postgres',
      'exporter',
      'shipmate-sidecar',
    ])
    expect(spec).not.toHaveProperty('initContainers')
    expect(plain).toContain('# The server.')
  })
})

describe('whatever the style', () => {
  const styles = {
    'lists further in': (value: unknown) => stringify(value),
    'lists as far in as their key': (value: unknown) => stringify(value, { indentSeq: false }),
    'four columns': (value: unknown) => stringify(value, { indent: 4 }),
    'in brackets': (value: unknown) => stringify(value, { collectionStyle: 'flow' }),
    JSON: (value: unknown) => JSON.stringify(value, null, 2),
    'JSON in one line': (value: unknown) => JSON.stringify(value),
    'without a last line end': (value: unknown) => stringify(value).trimEnd(),
    'with comments': (value: unknown) => stringify(value).replace(/$/gm, ' # said').replace(/^/, '# first\n'),
    'in a List': (value: unknown) =>
      stringify({ apiVersion: 'v1', kind: 'List', items: [{ kind: 'Service' }, value, { kind: 'Secret' }] }),
  }

  it.each(Object.entries(styles))('%s: it says what the function says, and twice is once', (title, write) => {
    fc.assert(
      fc.property(cases, one => {
        const set = {
          apiVersion: 'apps/v1',
          kind: 'StatefulSet',
          metadata: { name: 'orders' },
          spec: { template: one.pod },
        }
        const text = write(set)
        const wishes = { ...one.settings, lifecycle: undefined }
        const made = injectTexts([{ file: 'a.yaml', text }], [], wishes)
        const wanted = inject(one.pod, { app: 'orders' }, one.settings)
        expect(made.problems).toEqual([])
        const result = parse(made.texts[0] ?? '')
        expect((title === 'in a List' ? result.items[1] : result).spec.template).toEqual('pod' in wanted && wanted.pod)
        expect(injectTexts([{ file: 'a.yaml', text: made.texts[0] ?? '' }], [], wishes).texts).toEqual(made.texts)
        if (title.startsWith('lists'))
          expect(isWithin(text.trimEnd().split('\n'), (made.texts[0] ?? '').split('\n'))).toBe(true)
      }),
      { seed, numRuns },
    )
  })
})

describe('what is found in it', () => {
  const template = {
    metadata: { labels: { 'shipmate.dev/lifecycle': 'x' } },
    spec: { containers: [{ name: 'main', image: 'i' }] },
  }
  const isIn = (value: unknown) => run(stringify(value)).text?.includes('shipmate-sidecar')

  it.each(['StatefulSet', 'Deployment', 'DaemonSet'])('a %s, whose name is the name of the app', kind => {
    const { text } = run(stringify({ apiVersion: 'apps/v1', kind, metadata: { name: 'orders' }, spec: { template } }))
    expect(text).toContain('secretName: shipmate-tls-orders')
  })

  it('a Pod, whose own name it is', () => {
    const pod = { apiVersion: 'v1', kind: 'Pod', ...template, metadata: { ...template.metadata, name: 'alone' } }
    expect(run(stringify(pod)).text).toContain('secretName: shipmate-tls-alone')
  })

  it('the template of a StatefulApp, which has its lifecycle beside it', () => {
    const set = { template: { spec: template.spec }, volumeClaimTemplates: [{ metadata: { name: 'data' } }] }
    const app = { apiVersion: 'shipmate.dev/v1alpha1', kind: 'StatefulApp', metadata: { name: 'orders' } }
    const { text = '' } = run(stringify({ ...app, spec: { lifecycle: 'kept', template: { spec: set } } }))
    const made = parse(text).spec.template.spec.template
    expect(made.metadata.labels).toEqual({ 'shipmate.dev/lifecycle': 'kept' })
    expect(JSON.stringify(made)).toContain('"secretName":"shipmate-tls-orders"')
    // One that the controller asks by itself has no use for one.
    const via = { lifecycle: 'kept', via: { exec: {} }, template: { spec: set } }
    expect(isIn({ ...app, spec: via })).toBe(false)
  })

  it('nothing of other groups, of other kinds, or of no kind at all', () => {
    expect(
      isIn({ apiVersion: 'example.com/v1', kind: 'Deployment', metadata: { name: 'a' }, spec: { template } }),
    ).toBe(false)
    expect(isIn({ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'a' }, spec: { template } })).toBe(false)
    expect(run('').text).toBe('')
    expect(run('just: text\n---\n- 1\n').text).toBe('just: text\n---\n- 1\n')
  })
})

describe('--lifecycle, for a template without the label', () => {
  const bare =
    'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: cache}\nspec:\n  template:\n    spec:\n      containers: [{name: main, image: i}]\n'

  it('labels it, and names the app', () => {
    const { text = '' } = run(bare, { lifecycle: 'memcached', app: 'other' })
    const { metadata, spec } = parse(text).spec.template
    expect(metadata).toMatchObject({
      labels: { 'shipmate.dev/lifecycle': 'memcached' },
      annotations: { 'shipmate.dev/app': 'other' },
    })
    expect(spec.initContainers[0].name).toBe('shipmate-sidecar')
    expect(text).toMatch(/^ {2}template:\n {4}metadata:\n/m)
    expect(run(text, { lifecycle: 'memcached' }).text).toBe(text)
  })

  it('is not for several', () => {
    expect(run(`${bare}---\n${bare}`, { lifecycle: 'x' }).problems).toEqual([
      '--lifecycle is for one template without the label shipmate.dev/lifecycle, and there are 2 (Deployment cache, Deployment cache): label those that are meant',
    ])
  })
})

describe('what is refused, with nothing printed', () => {
  const labelled = (rest: string) =>
    `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: cache}\nspec:\n  template:\n    metadata: {labels: {shipmate.dev/lifecycle: x}}\n${rest}`

  it.each([
    ['a text that is no YAML', 'a: [1\nb: 2\n', /^a\.yaml:2:1: /],
    ['a key that stands twice', 'a: 1\na: 2\n', /^a\.yaml:2:1: .*unique/],
    [
      'a template without containers',
      labelled('    spec: {}\n'),
      /^a\.yaml: Deployment cache: spec\.containers is no list of containers$/,
    ],
    [
      'a value without quotes',
      labelled('    spec: {}\n').replace('{labels', '{annotations: {shipmate.dev/inject: false}, labels'),
      /the value of shipmate\.dev\/inject has to be a text: put it in quotes$/,
    ],
    [
      'an annotation that is not known',
      labelled('    spec: {containers: [{name: a}]}\n').replace(
        '{labels',
        '{annotations: {shipmate.dev/imag: a}, labels',
      ),
      /^a\.yaml: Deployment cache: annotation shipmate\.dev\/imag is not known; did you mean "shipmate\.dev\/image"\?$/,
    ],
    [
      'a container by an alias',
      `x: &c {name: a, image: i}\n${labelled('    spec:\n      containers: [*c]\n')}`,
      /cannot be changed in place: write out the aliases/,
    ],
    [
      'a container with an alias elsewhere',
      `${labelled('    spec:\n      containers: [&c {name: a, image: i}]\n')}x: *c\n`,
      /cannot be changed in place: write out the aliases/,
    ],
    [
      'a lifecycle with an error',
      `${labelled('    spec: {containers: [{name: a}]}\n')}---\nkind: Lifecycle\nmetadata: {name: x}\nspec: {preStop: none}\n`,
      /lifecycle x: preStop: "none" is no action/,
    ],
  ])('%s', (_, text, problem) => {
    const { text: printed, problems } = run(text)
    expect(printed).toBeUndefined()
    expect(problems[0]).toMatch(problem)
  })

  it('aliases and merges that are no business of ours are kept', () => {
    const text = labelled(
      '    spec:\n      containers:\n        - &one\n          name: a\n          env: &env [{name: X, value: "1"}]\n        - {<<: {image: i}, name: b, env: *env}\n',
    )
    const { text: after = '', problems } = run(text)
    expect(problems).toEqual([])
    expect(after).toContain('env: *env')
  })
})
