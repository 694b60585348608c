import fc from 'fast-check'
import * as prom from 'prom-client'
import { beforeEach, describe, expect, it } from 'vitest'
import { createRegistry, metricsContentType, type Registry } from '../../sidecar/metrics.ts'

let registry: Registry

beforeEach(() => {
  registry = createRegistry()
})

interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

/** Reads a page by the grammar of the text format 0.0.4, and fails on anything else. */
function parse(page: string) {
  const families = new Map<string, { help: string; type: string; samples: Sample[] }>()
  if (page !== '') expect(page.endsWith('\n')).toBe(true)
  let current: string | undefined
  for (const line of page.split('\n').slice(0, -1)) {
    const help = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ((?:[^\\\n]|\\\\|\\n)*)$/.exec(line)
    const type = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)$/.exec(line)
    const sample =
      /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\+Inf|-Inf|NaN|-?\d+(?:\.\d+)?(?:e[+-]\d+)?)$/.exec(
        line,
      )
    if (help?.[1] !== undefined) {
      current = help[1]
      expect(families.has(current), `${current} twice`).toBe(false)
      families.set(current, { help: unescaped(help[2] ?? ''), type: '', samples: [] })
    } else if (type?.[1] !== undefined) {
      expect(type[1]).toBe(current)
      const family = families.get(type[1])
      if (family) family.type = type[2] ?? ''
    } else if (sample?.[1] !== undefined) {
      const family = families.get(current ?? '')
      const ending = family?.type === 'histogram' ? /^_(bucket|sum|count)$/ : /^$/
      expect(sample[1].startsWith(current ?? '?') && sample[1].slice(current?.length)).toMatch(ending)
      const labels = [...(sample[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/gs)]
      family?.samples.push({
        name: sample[1],
        labels: Object.fromEntries(labels.map(([, name, value]) => [name, unescaped(value ?? '')])),
        value: Number((sample[3] ?? '').replace('Inf', 'Infinity')),
      })
    } else {
      expect.fail(`no line of the format: ${JSON.stringify(line)}`)
    }
  }
  return families
}

const unescaped = (text: string) => text.replace(/\\(.)/g, (_, one: string) => (one === 'n' ? '\n' : one))
const samplesOf = (name: string) => parse(registry.page()).get(name)?.samples

describe('a page', () => {
  it('without metrics is empty', () => {
    expect(registry.page()).toBe('')
    expect(metricsContentType).toBe(prom.register.contentType)
  })

  it('has help and type of each metric, and what has no labels from the beginning', () => {
    registry.counter('shipmate_sidecar_starts_total', 'Starts.\nOf "it", \\ too.')
    registry.gauge('shipmate_sidecar_runs', 'Runs.', ['phase'])
    const families = parse(registry.page())
    expect(families.get('shipmate_sidecar_starts_total')).toEqual({
      help: 'Starts.\nOf "it", \\ too.',
      type: 'counter',
      samples: [{ name: 'shipmate_sidecar_starts_total', labels: {}, value: 0 }],
    })
    expect(families.get('shipmate_sidecar_runs')).toEqual({ help: 'Runs.', type: 'gauge', samples: [] })
  })

  it('asks before it is written', () => {
    const gauge = registry.gauge('shipmate_sidecar_age_seconds', 'Age.')
    let age = 0
    registry.beforePage(() => gauge.set(++age))
    registry.page()
    expect(samplesOf('shipmate_sidecar_age_seconds')?.[0]?.value).toBe(2)
  })
})

it('a counter rises, for each set of labels, and never falls', () => {
  const counter = registry.counter('shipmate_sidecar_runs_total', 'Runs.', ['action', 'phase'])
  counter.inc({ action: 'backup', phase: 'Failed' })
  counter.inc({ phase: 'Failed', action: 'backup' })
  counter.add(2.5, { action: 'stop', phase: 'Failed' })
  counter.add(-1, { action: 'stop', phase: 'Failed' })
  counter.add(Number.NaN, { action: 'stop', phase: 'Failed' })
  expect(samplesOf('shipmate_sidecar_runs_total')).toEqual([
    { name: 'shipmate_sidecar_runs_total', labels: { action: 'backup', phase: 'Failed' }, value: 2 },
    { name: 'shipmate_sidecar_runs_total', labels: { action: 'stop', phase: 'Failed' }, value: 2.5 },
  ])
})

it('a gauge is what it was set to, and is forgotten with what it is about', () => {
  const gauge = registry.gauge('shipmate_sidecar_probe_ok', 'Probes.', ['probe'])
  for (const [index, value] of [1.5, -2e-9, 3e21, Infinity, -Infinity, Number.NaN].entries()) {
    gauge.set(value, { probe: String(index) })
  }
  expect(samplesOf('shipmate_sidecar_probe_ok')?.map(({ value }) => value)).toEqual([
    1.5,
    -2e-9,
    3e21,
    Infinity,
    -Infinity,
    Number.NaN,
  ])
  gauge.clear()
  expect(samplesOf('shipmate_sidecar_probe_ok')).toEqual([])
})

it('labels may hold anything', () => {
  const gauge = registry.gauge('shipmate_sidecar_odd', 'Odd.', ['one', 'two'])
  const text = fc.string({ unit: fc.constantFrom('"', '\\', '\n', 'n', ',', '=', '{', '}', 'é', '😀', '\r', ' ') })
  fc.assert(
    fc.property(text, text, (one, two) => {
      gauge.clear()
      gauge.set(7, { one, two })
      expect(samplesOf('shipmate_sidecar_odd')).toEqual([
        { name: 'shipmate_sidecar_odd', labels: { one, two }, value: 7 },
      ])
    }),
    { seed: Number(process.env['SHIPMATE_SEED']) },
  )
})

it('is what prom-client would write of the same', async () => {
  const registers = [new prom.Registry()]
  const help = 'Of "quotes", \\ and\nlines.'
  const labels = { a: 'x"\\\ny', b: '' }
  const ours = {
    counter: registry.counter('shipmate_sidecar_c_total', help, ['a', 'b']),
    gauge: registry.gauge('shipmate_sidecar_g', help),
    histogram: registry.histogram('shipmate_sidecar_h', help, [0.1, 1, 10], ['a', 'b']),
  }
  const theirs = {
    counter: new prom.Counter({ name: 'shipmate_sidecar_c_total', help, labelNames: ['a', 'b'], registers }),
    gauge: new prom.Gauge({ name: 'shipmate_sidecar_g', help, registers }),
    histogram: new prom.Histogram({
      ...{ name: 'shipmate_sidecar_h', help, labelNames: ['a', 'b'], buckets: [0.1, 1, 10] },
      registers,
    }),
  }
  for (const value of [0.05, 0.1, 0.5, 5, 50, 0]) {
    ours.counter.add(value, labels)
    theirs.counter.inc(labels, value)
    ours.gauge.set(value)
    theirs.gauge.set(value)
    ours.histogram.observe(value, labels)
    theirs.histogram.observe(labels, value)
  }
  const normal = (page: string) => [...parse(page.replace(/\n+/g, '\n'))]
  expect(normal(registry.page())).toEqual(normal((await registers[0]?.metrics()) ?? ''))
})

it('a series whose subject is gone is removed, and begins anew if that comes back', () => {
  const counter = registry.counter('shipmate_sidecar_c_total', 'C.', ['probe'])
  const gauge = registry.gauge('shipmate_sidecar_g', 'G.', ['probe'])
  for (const probe of ['a', 'b']) {
    counter.add(2, { probe })
    gauge.set(2, { probe })
  }
  counter.remove({ probe: 'a' })
  gauge.remove({ probe: 'a' })
  expect(registry.page()).not.toContain('probe="a"')
  expect(registry.page()).toContain('shipmate_sidecar_g{probe="b"} 2')
  counter.inc({ probe: 'a' })
  expect(registry.page()).toContain('shipmate_sidecar_c_total{probe="a"} 1')
})

it('a histogram without labels is there from the beginning', () => {
  registry.histogram('shipmate_sidecar_h', 'H.', [1, 2])
  expect(samplesOf('shipmate_sidecar_h')?.map(({ name, value }) => [name, value])).toEqual([
    ['shipmate_sidecar_h_bucket', 0],
    ['shipmate_sidecar_h_bucket', 0],
    ['shipmate_sidecar_h_bucket', 0],
    ['shipmate_sidecar_h_sum', 0],
    ['shipmate_sidecar_h_count', 0],
  ])
})

describe('what would make a page that is not valid is refused', () => {
  it('a name twice', () => {
    registry.gauge('shipmate_sidecar_a', 'A.')
    expect(() => registry.gauge('shipmate_sidecar_a', 'A.')).toThrow('there is a metric shipmate_sidecar_a already')
  })

  it('names with other characters', () => {
    expect(() => registry.gauge('shipmate_sidecar_a-b', 'A.')).toThrow('"shipmate_sidecar_a-b" is no name of a metric')
    for (const label of ['a-b', '1a', '__a', 'le']) {
      expect(() => registry.gauge('shipmate_sidecar_a', 'A.', [label])).toThrow(`"${label}" is no name of a label`)
    }
  })

  it('buckets that do not rise', () => {
    expect(() => registry.histogram('shipmate_sidecar_a', 'A.', [1, 1])).toThrow('do not rise: 1, 1')
    expect(() => registry.histogram('shipmate_sidecar_a', 'A.', [1, Infinity])).toThrow('do not rise')
  })
})
