import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import * as model from '../../shared/lifecycle/model.ts'
import { examine } from '../../sidecar/config/examine.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/lifecycle.md'), 'utf8')
const blocks = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => text ?? '')

describe('docs/lifecycle.md', () => {
  test.each(blocks.map(text => [text.split('\n').slice(0, 3).join(' '), text]))(
    'has a configuration that works: %s',
    (_, text) => {
      expect(examine(text).problems.filter(({ severity }) => severity === 'error')).toEqual([])
      expect(parse(text)).toBeTypeOf('object')
    },
  )

  test.each([
    ['Probes', model.probe],
    ['Actions', model.action],
    ['States', model.state],
  ])('names every field of %s', (section, schema) => {
    const text = page.slice(page.indexOf(`## ${section}`)).split('\n## ')[0] ?? ''
    const missing = Object.keys(schema.shape).filter(
      field => !['name', 'description'].includes(field) && !text.includes(`\`${field}`),
    )
    expect(missing).toEqual([])
  })

  test('states the defaults that are in force', () => {
    const { probe, action, cancel, verify } = model.defaults
    for (const value of [probe.every, probe.timeout, action.timeout, cancel.grace, verify.timeout])
      expect(page).toContain(value)
  })
})
