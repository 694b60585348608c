import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  expand,
  mistakenReferencesOf,
  paramEnvName,
  paramFileEnvName,
  referencesOf,
  TemplateError,
} from '../../../shared/params/template.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)
const texts = fc.string({ unit: 'grapheme' })

describe('a template', () => {
  it('has each reference replaced inside its one string', () => {
    expect(expand('--to=$(params.to)/$(params.n)', { to: 'a b; rm -rf "$HOME"', n: 3 }, 'argument')).toBe(
      '--to=a b; rm -rf "$HOME"/3',
    )
  })

  it('takes $$( for a literal $(, and leaves any other $ alone', () => {
    expect(expand('$$(params.to) $(date) $HOME $$ $(params) $', { to: 'x' }, 'argument')).toBe(
      '$(params.to) $(date) $HOME $$ $(params) $',
    )
    expect(expand('$$$(params.to)', { to: 'x' }, 'argument')).toBe('$$(params.to)')
  })

  it('writes what is not a text as canonical JSON', () => {
    expect(expand('$(params.x)', { x: { b: 1, a: [true, null] } }, 'argument')).toBe('{"a":[true,null],"b":1}')
  })

  it('finds only what was given, not what every object has', () => {
    expect(() => expand('$(params.constructor)', {}, 'argument')).toThrow(TemplateError)
    expect(expand('$(params.constructor)', { constructor: 'x' }, 'argument')).toBe('x')
    expect(expand('$(params.toString)', {}, 'body')).toBe('')
  })

  it(`is never expanded twice, and $& and the like mean nothing: seed ${seed}`, () => {
    const given = fc.oneof(texts, fc.constantFrom('$(params.b)', '$&', '$1', '$$', "$'", '$$(params.b)'))
    const property = fc.property(given, given, (a, b) => {
      fc.pre(!`${a}${b}`.includes('\0'))
      expect(expand('<$(params.a)|$(params.b)>', { a, b }, 'argument')).toBe(`<${a}|${b}>`)
    })
    fc.assert(property, { seed })
  })

  it('lists what it names, each once', () => {
    expect(referencesOf('$(params.a) $$(params.b) $(params.c-d.e) $(params.a)')).toEqual(['a', 'c-d.e'])
  })

  it.each(['$(param.x)', '$(params)', '$(params.)', '$( params.x)', '$(Params.x)', '$(params.x y)', '$(params.x'])(
    'is probably mistaken with %s',
    text => {
      expect(referencesOf(text)).toEqual([])
      expect(mistakenReferencesOf(`a ${text}`)).toHaveLength(1)
    },
  )

  it.each(['$(params.x)', '$$(param.x)', '$(date)', '$param'])('is right with %s', text => {
    expect(mistakenReferencesOf(text)).toEqual([])
  })
})

describe('in an argument', () => {
  it('a NUL is refused, by name and not by value', () => {
    const attempt = () => expand('$(params.x)', { x: 'sesame\0' }, 'argument')
    expect(attempt).toThrow('parameter x has a NUL')
    expect(attempt).not.toThrow('sesame')
  })

  it('what is absent is refused', () => {
    expect(() => expand('$(params.x)', {}, 'argument')).toThrow('parameter x was not given')
  })
})

describe('in a URL', () => {
  it(`a value stays one part of the path or the query, whatever it is: seed ${seed}`, () => {
    const property = fc.property(texts, texts, (segment, query) => {
      fc.pre(!['.', '..'].includes(segment))
      const url = new URL(expand('http://h/a/$(params.s)/b?q=$(params.q)#f', { s: segment, q: query }, 'url'))
      expect(url.host).toBe('h')
      expect(url.pathname.split('/').map(decodeURIComponent)).toEqual(['', 'a', segment, 'b'])
      expect(url.searchParams.get('q')).toBe(query)
      expect(url.hash).toBe('#f')
    })
    fc.assert(property, { seed })
  })

  it.each(['.', '..'])('a segment %s, which would lead elsewhere, is refused', dots => {
    expect(() => expand('http://h/a/$(params.s)/b', { s: dots }, 'url')).toThrow('lead elsewhere')
    expect(() => expand('http://h/a/.$(params.s)', { s: dots.slice(1) }, 'url')).toThrow('lead elsewhere')
    expect(expand('http://h/v$(params.s)?x=$(params.s)', { s: dots }, 'url')).toBe(`http://h/v${dots}?x=${dots}`)
  })

  it('half a character is refused', () => {
    expect(() => expand('http://h/$(params.s)', { s: '\ud800' }, 'url')).toThrow('parameter s is not Unicode')
  })
})

describe('in a header', () => {
  it.each(['a\r\nX-Evil: 1', 'a\nb', 'a\rb', 'a\0', 'ツ'])('%j is refused', value => {
    expect(() => expand('Bearer $(params.t)', { t: value }, 'header')).toThrow('no header can hold')
  })

  it('what is absent is empty', () => {
    expect(expand('<$(params.t)>', {}, 'header')).toBe('<>')
  })
})

describe('in a body', () => {
  it(`that is JSON, a value stays inside its string, and becomes itself outside: seed ${seed}`, () => {
    const property = fc.property(texts, fc.jsonValue(), (text, value) => {
      const body = expand('{"a": "x$(params.t)y", "b": [$(params.v)], "$$(": 1}', { t: text, v: value }, 'body')
      expect(JSON.parse(body)).toEqual(JSON.parse(JSON.stringify({ a: `x${text}y`, b: [value], '$(': 1 })))
    })
    fc.assert(property, { seed })
  })

  it('that is JSON, quotes that are escaped do not end a string', () => {
    expect(JSON.parse(expand('{"a\\"": "\\\\$(params.t)"}', { t: '"' }, 'body'))).toEqual({ 'a"': '\\"' })
  })

  it('that is JSON, what is absent is null, or empty in a string', () => {
    expect(expand('{"a": $(params.t), "b": "$(params.t)"}', {}, 'body')).toBe('{"a": null, "b": ""}')
  })

  it('that is not JSON, it stands as it is', () => {
    expect(expand('a=$(params.t)&b', { t: '"x"' }, 'body')).toBe('a="x"&b')
    expect(expand('$(params.t)', { t: 'the whole body' }, 'body')).toBe('the whole body')
  })
})

it('a parameter is the variable of its name in upper case', () => {
  expect(paramEnvName('to-dir.x2')).toBe('SHIPMATE_PARAM_TO_DIR_X2')
  expect(paramFileEnvName('password')).toBe('SHIPMATE_PARAM_FILE_PASSWORD')
})
