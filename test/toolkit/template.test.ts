import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { YamlTemplateError } from '../../controller/toolkit/template/problem.ts'
import { yamlTemplate } from '../../controller/toolkit/template.ts'
import { jsonProblem } from '../../shared/canonical.ts'

const render = (text: string, values: Record<string, unknown> = {}) =>
  yamlTemplate<undefined, Record<string, unknown>>({ text, name: 'x.yaml' }, () => values)(undefined)

/** The message of the YamlTemplateError or other error that it fails with. */
function failure(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('it did not fail')
}

const seed = Number(process.env.SHIPMATE_SEED ?? 1)
const json = fc.jsonValue({ maxDepth: 4 }).filter(value => jsonProblem(value) === undefined)
/** Texts that mean something in YAML, or in the template language, or to those who replace placeholders; and any other. */
const nasty = fc.oneof(
  fc.constantFrom(
    ...[
      'yes',
      'no',
      'null',
      '~',
      '',
      ' ',
      '1e3',
      '0644',
      '0x1f',
      '.inf',
      'a: b',
      '# x',
      'x # y',
      '{}',
      '[]',
      '- a',
      '---',
      '...',
      '<<',
    ],
    ...[
      '"',
      "'",
      '\\',
      '\\n',
      '|',
      '>',
      '&a',
      '*a',
      '!!int 1',
      '%YAML 1.1',
      '? a',
      ': b',
      '@',
      '`',
      '\t',
      '\ttab',
      'a\nb: c',
      '\n',
      '\r\n',
      '\u2028',
    ],
    ...[
      '{{ secret }}',
      '{% if x %}',
      'Value0Z',
      'ValueX1Z',
      '&lt;',
      '<b>&"</b>',
      '\u0000',
      '\ufeff',
      '\u0085',
      'constructor',
      '2026-01-01',
      '12:30',
    ],
  ),
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary' }),
)
const scalar = fc.oneof(nasty, fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean())

describe('a value in a place of its own', () => {
  it.each([
    ['a number', 3],
    ['a text that looks like a boolean', 'yes'],
    ['a text that looks like a number', '1e3'],
    ['a text that looks like a mapping', 'a: b'],
    ['a text that looks like a comment', '# x'],
    ['text of several lines', 'one\n  two: 2\n\n---\n'],
    ['a text that looks like an empty object', '{}'],
    ['an object', { a: [1, { b: null }] }],
    ['a list', ['a', 1]],
    ['null', null],
    ['HTML', `<a href="x">&'</a>`],
  ])('is %s as it was given', (_what, value) => {
    expect(render('spec:\n  before: 1\n  here: {{ value }}\n  after: 2\n', { value })).toEqual({
      spec: { before: 1, here: value, after: 2 },
    })
  })

  it('is any JSON value, in whatever place of YAML it stands', () => {
    const places: [string, (value: unknown) => object][] = [
      ['a: {{ v }}', a => ({ a })],
      ['a: {{ v }} # a comment {{ v }}\nb: c', a => ({ a, b: 'c' })],
      ['a:\n  {{ v }}\nb: c', a => ({ a, b: 'c' })],
      ['a:\n- {{ v }}\n- {{ v }}\n- b: {{ v }}\n  c: d', v => ({ a: [v, v, { b: v, c: 'd' }] })],
      ['a: [{{ v }}, b, {{ v }}]', v => ({ a: [v, 'b', v] })],
      ['{a: {{ v }}, b: [{{v}}] }', v => ({ a: v, b: [v] })],
      ['a: &x {{ v }}\nb: *x', v => ({ a: v, b: v })],
      ['? a\n: {{ v }}', v => ({ a: v })],
      ['{% for i in (1..2) %}k{{ i }}: {{ v }}\n{% endfor %}', v => ({ k1: v, k2: v })],
      ['{%- if true -%}\na: {{ " " -}} {% assign w = v %}\nb: {{ w }}\n{%- endif -%}', v => ({ a: ' ', b: v })],
    ]
    fc.assert(
      fc.property(json, fc.constantFrom(...places), (value, [text, wished]) => {
        expect(render(text, { v: value })).toEqual(wished(value))
      }),
      { seed, numRuns: 1000 },
    )
  })

  it('is a copy of its own each time', () => {
    const value = Object.freeze({ a: Object.freeze([1]) })
    const template = yamlTemplate<undefined, { x: { a: number[] }; y: { a: number[] } }>(
      { text: 'x: {{ v }}\ny: {{ v }}' },
      () => ({ v: value }),
    )
    const first = template(undefined)
    first.x.a.push(2)
    expect(first.y.a).toEqual([1])
    expect(template(undefined).x.a).toEqual([1])
  })
})

describe('a value within text', () => {
  it('is text inside that scalar', () => {
    expect(render('image: "repo/{{ name }}:{{ tag }}"', { name: 'a"b', tag: 1.5 })).toEqual({ image: 'repo/a"b:1.5' })
    expect(render('quoted: "{{ size }}"', { size: 3 })).toEqual({ quoted: '3' })
    expect(render('port: {{ a }}{{ b }}', { a: 8, b: 0 })).toEqual({ port: '80' })
  })

  it('changes nothing but that text, whatever it is and however the text is written', () => {
    const places: [string, (text: string) => object][] = [
      ['a: "x{{ v }}y"\nb: c', v => ({ a: `x${v}y`, b: 'c' })],
      ["a: 'x{{ v }}'\nb: c", v => ({ a: `x${v}`, b: 'c' })],
      ['a: "{{ v }}"', v => ({ a: v })],
      ['a: x {{ v }} y\nb: c', v => ({ a: `x ${v} y`, b: 'c' })],
      ['a: |\n  x: {{ v }}\n  # y\nb: c', v => ({ a: `x: ${v}\n# y\n`, b: 'c' })],
      ['a: >-\n  x\n  {{ v }}\nb: c', v => ({ a: `x ${v}`, b: 'c' })],
      ['a: [x{{ v }}, "{{ v }}y"]', v => ({ a: [`x${v}`, `${v}y`] })],
      ['a: {x-{{ v }}: {{ v }}z}', v => ({ a: { [`x-${v}`]: `${v}z` } })],
      ['a: !!str {{ v }}', v => ({ a: v })],
    ]
    fc.assert(
      fc.property(scalar, fc.constantFrom(...places), (value, [text, wished]) => {
        expect(render(text, { v: value })).toEqual(wished(String(value)))
      }),
      { seed, numRuns: 1000 },
    )
  })

  it('is an error where it is no text', () => {
    expect(failure(() => render('a: 1\nb: "x {{ v }}"', { v: {} }))).toBe(
      'x.yaml:2:7: {{ v }} is an object, and stands where only text can',
    )
    expect(failure(() => render('"{{ v }}": 1', { v: [1] }))).toContain('{{ v }} is a list')
    expect(failure(() => render('a: "{{ v }}"', { v: null }))).toContain('{{ v }} is null')
  })
})

describe('a key', () => {
  it('can be a value, as text', () => {
    fc.assert(
      fc.property(scalar, json, (key, value) => {
        fc.pre(!['__proto__', 'fixed'].includes(String(key)))
        expect(render('{{ k }}: {{ v }}\nfixed: 1', { k: key, v: value })).toEqual({ [String(key)]: value, fixed: 1 })
      }),
      { seed },
    )
  })

  it('cannot be there twice, nor be one that harms', () => {
    expect(failure(() => render('a: 1\n{{ k }}: 2', { k: 'a' }))).toBe('x.yaml:2:1: the key "a" is there twice')
    expect(failure(() => render('{{ k }}: 2', { k: '__proto__' }))).toContain('cannot be a key')
  })
})

describe('no value', () => {
  it('ever changes the structure around it', () => {
    const shape = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(shape)
        : typeof value === 'object' && value !== null
          ? Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shape(member)]))
          : typeof value
    // A template made of any object: each text in it becomes a value, quoted or not.
    const objects = fc.object({ key: fc.string({ minLength: 1 }), values: [nasty], maxDepth: 4 })
    fc.assert(
      fc.property(objects, fc.boolean(), fc.array(nasty, { minLength: 1 }), (object, quoted, texts) => {
        fc.pre(jsonProblem(object) === undefined && Object.keys(object).length > 0)
        let at = 0
        const open = JSON.stringify(object, (_key, value: unknown) =>
          typeof value === 'string' ? `@@${at++}@@` : value,
        )
        const given = Object.fromEntries(Array.from({ length: at }, (_, i) => [`v${i}`, texts[i % texts.length]]))
        fc.pre(!/\{[{%]|[%}]\}.*\{\{/.test(JSON.stringify(Object.keys(object))))
        const tree = JSON.parse(open) as object
        const text = stringify(tree, { defaultStringType: quoted ? 'QUOTE_DOUBLE' : 'PLAIN', lineWidth: 0 }).replace(
          quoted ? /@@(\d+)@@/g : /"@@(\d+)@@"/g,
          '{{ v$1 }}',
        )
        fc.pre(!/\{%/.test(text) && (text.match(/\{\{/g) ?? []).length === at)
        expect(shape(render(text, given))).toEqual(shape(object))
      }),
      { seed, numRuns: 200 },
    )
  })
})

describe('loops and conditions', () => {
  it('make as many parts as there are values', () => {
    const text = [
      'kind: List',
      'items:',
      '{% for port in ports %}',
      '- name: {{ port.name }}',
      '  port: {{ port.number }}',
      '  {% if port.tls %}',
      '  tls: "{{ forloop.index }} of {{ forloop.length }}"',
      '  {% else %}',
      '  plain: {{ port.tls }}',
      '  {% endif %}',
      '{% endfor %}',
    ].join('\n')
    const ports = [
      { name: 'yes', number: 1, tls: true },
      { name: '# x', number: '2', tls: false },
    ]
    expect(render(text, { ports })).toEqual({
      kind: 'List',
      items: [
        { name: 'yes', port: 1, tls: '1 of 2' },
        { name: '# x', port: '2', plain: false },
      ],
    })
    expect(render(text, { ports: [] })).toEqual({ kind: 'List', items: null })
  })

  it('make one item of each value, whatever it is', () => {
    fc.assert(
      fc.property(fc.array(json), list => {
        const text = 'items: [{% for item in list %}{{ item }},{% endfor %}]\nmore: 1'
        expect(render(text, { list })).toEqual({ items: list, more: 1 })
      }),
      { seed },
    )
  })

  it('may ask for what is undefined', () => {
    const text = 'a: 1\n{% if tls.secret %}\nb: {{ tls.secret }}\n{% endif %}\nc: {{ size | default: 3 }}'
    expect(render(text, { tls: undefined, size: undefined })).toEqual({ a: 1, c: 3 })
    expect(render(text, { tls: { secret: 's' }, size: 1 })).toEqual({ a: 1, b: 's', c: 1 })
  })

  it('take null for what it is', () => {
    const text = [
      'a: {% if v %}1{% else %}2{% endif %}',
      'b: {% if v == nil %}1{% else %}2{% endif %}',
      'c: [{% for x in v %}{{ x }}{% endfor %}]',
      'd: {{ v | default: "x" }}',
      'e: {{ list | json }}',
      'f: {{ list | compact }}',
      'g: {% if v.w %}1{% else %}2{% endif %}',
    ].join('\n')
    expect(render(text, { v: null, list: [1, null] })).toEqual({
      ...{ a: 2, b: 1, c: [], d: 'x', e: '[1,null]', f: [1], g: 2 },
    })
  })

  it('end when a value asks for too much', () => {
    expect(failure(() => render('a: [{% for i in (1..n) %}1,{% endfor %}]', { n: 1e9 }))).toContain('limit')
  })
})

describe('a value that is missing', () => {
  it('is an error with its name, the file, the line and the column', () => {
    const error = (() => {
      try {
        return render('a: 1\nb:\n  c: {{ spec.replicas }}', { spec: {} })
      } catch (error) {
        return error
      }
    })()
    expect(error).toBeInstanceOf(YamlTemplateError)
    expect(error).toMatchObject({ file: 'x.yaml', line: 3, column: 9, retry: 'never' })
    expect(error).toHaveProperty('message', 'x.yaml:3:9: spec.replicas has no value')
  })

  it('is one where no such value is given at all, even in a condition', () => {
    expect(failure(() => render('a: 1\n{% if szie %}b: 1{% endif %}', { size: 1 }))).toBe(
      'x.yaml:2:7: there is no value szie; did you mean "size"?',
    )
  })

  it.each([
    ['the size of an object, which is not the number of its keys', '{{ v.size }}', { a: 1 }],
    ['a property of null', '{{ v.a }}', null],
    ['a property of what is inherited', '{{ v.constructor }}', {}],
    ['an item that is not there', '{{ v[3] }}', [1]],
    ['the first of none', '{{ v | first }}', []],
    ['a list that is undefined', '{% for x in v %}{% endfor %}', undefined],
  ])('is one for %s', (_what, expression, v) => {
    expect(failure(() => render(`a: ${expression}`, { v }))).toMatch(/^x\.yaml:1:\d+: .*(has no value|is no value)/)
  })

  it('is not filled in by what JSON does not have', () => {
    for (const v of [new Date(), Number.NaN, () => 1, 1n, new Map(), '\ud800'])
      expect(failure(() => render('a: {{ v }}', { v }))).toMatch(/^the values of x\.yaml: v: /)
    const itself: Record<string, unknown> = {}
    itself['itself'] = itself
    expect(failure(() => render('a: {{ v }}', { v: itself }))).toContain('nested deeper than')
  })
})

describe('a template that is wrong', () => {
  const define = (text: string) => () => yamlTemplate({ text, name: 'x.yaml' }, () => ({}))

  it.each([
    ['YAML that is none', 'a: 1\nb: [1', /^x\.yaml:2:\d+: /],
    ['YAML with a value in it', 'a: {{ x }}\nb: c: d', /^x\.yaml:2:4: /],
    ['a list', '\n- 1', 'x.yaml:2:1: it gives a list, not an object'],
    ['text', 'hello', 'x.yaml:1:1: it gives a string, not an object'],
    ['nothing', '# nothing\n', 'x.yaml:1:1: there is no object in it'],
    ['two objects', 'a: 1\n---\nb: 1\n', /a second object begins here; a template gives one$/],
    ['a key twice', 'a: 1\na: 2', /^x\.yaml:2:1: /],
    ['an unknown tag', 'a: 1\n{% iff x %}', 'x.yaml:2:1: there is no tag iff here; did you mean "if"?'],
    ['a tag that writes text of its own', '{% capture x %}{% endcapture %}', /there is no tag capture here/],
    ['an unknown filter', 'a: {{ x | frob }}', 'x.yaml:1:4: there is no filter frob here'],
    ['a filter that knows the time', 'a: {{ "now" | date: "%s" }}', 'x.yaml:1:4: there is no filter date here'],
    ['an expression that does not end', 'a: 1\nb: {{ x', /^x\.yaml:2:4: output .* not closed$/],
    ['a loop that does not end', 'a: 1\n{% for x in y %}', /^x\.yaml:2:1: .* not closed$/],
  ])('is an error where it is defined: %s', (_what, text, message) => {
    expect(failure(define(text))).toMatch(message)
  })

  it('is an error at the line of the template, not of what came out of it', () => {
    const text = 'a:\n{% for i in list %}\n- {{ i }}\n{% endfor %}\nb: c: d'
    expect(failure(() => render(text, { list: [1, 2, 3, 4] }))).toMatch(/^x\.yaml:5:4: /)
    expect(failure(() => render('{% raw %}\n\nb: c: d{% endraw %}'))).toMatch(/^x\.yaml:3:4: /)
  })

  it('is an error when the one value that it is is no object', () => {
    expect(render('{{ all }}', { all: { a: 1 } })).toEqual({ a: 1 })
    expect(failure(() => render('{{ all }}', { all: 3 }))).toBe('x.yaml:1:1: it gives a number, not an object')
  })
})

describe('what is written in a template', () => {
  it('means what kubectl makes of it', () => {
    expect(render('a: yes\nb: 0644\nc: 12:30\nd: 2026-01-01\ne: ~\nf: 1_000\non: x\ng: "0644"')).toEqual({
      ...{ a: true, b: 0o644, c: '12:30', d: '2026-01-01', e: null, f: 1000, on: 'x', g: '0644' },
    })
    expect(render('a: &a {x: 1}\nb: {<<: *a, y: 2}\n---\n')).toEqual({ a: { x: 1 }, b: { x: 1, y: 2 } })
  })

  it('can have braces in it', () => {
    expect(render('a: {% raw %}"{{ $labels.job }}"{% endraw %}\nb: {{ "{{" }}')).toEqual({
      a: '{{ $labels.job }}',
      b: '{{',
    })
  })

  it('can have the words in it that stand for values meanwhile', () => {
    expect(render('Value0Z: Value1Z ValueX0Z {{ v }}', { v: 'ValueXX0Z' })).toEqual({
      Value0Z: 'Value1Z ValueX0Z ValueXX0Z',
    })
  })
})

describe('a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'template-'))
  const path = join(folder, 'x.yaml')

  it('is found by its URL, or from the working directory; and is read once', () => {
    writeFileSync(path, 'a: {{ cr.name }}\n')
    const values = (cr: { name: string }) => ({ cr })
    const byUrl = yamlTemplate(pathToFileURL(path), values)
    const byPath = yamlTemplate(relative(process.cwd(), path), values)
    rmSync(folder, { recursive: true })
    expect([byUrl({ name: 'n' }), byPath({ name: 'm' })]).toEqual([{ a: 'n' }, { a: 'm' }])
  })

  it('that is not there, or none, is an error at once', () => {
    expect(failure(() => yamlTemplate('no/such.yaml', () => ({})))).toContain('no/such.yaml')
    expect(failure(() => yamlTemplate(new URL('https://example.com/x'), () => ({})))).toContain('https')
  })
})
