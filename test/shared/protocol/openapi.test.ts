import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it } from 'vitest'
import { openapi } from '../../../shared/protocol/openapi.ts'
import { problems } from '../../../shared/protocol/problems.ts'
import { routes } from '../../../shared/protocol/routes.ts'

interface Operation {
  operationId: string
  parameters: { name: string; in: string; required?: boolean }[]
  responses: Record<string, object>
}

const document = openapi('1.2.3') as unknown as {
  info: { version: string }
  paths: Record<string, Record<string, Operation>>
}
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
)

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const validator = new Validator()
    expect(await validator.validate(structuredClone(document))).toMatchObject({ valid: true })
    expect(validator.version).toBe('3.1')
  })

  it('names the version', () => {
    expect(document.info.version).toBe('1.2.3')
  })

  it('has every route, HEAD beside each GET, and nothing else', () => {
    const expected = Object.values(routes).flatMap(({ method, path }) =>
      method === 'get' ? [`get ${path}`, `head ${path}`] : [`${method} ${path}`],
    )
    expect(operations.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(expected.sort())
  })

  it('gives every operation an id of its own, and every path its parameter', () => {
    const ids = operations.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { path, operation } of operations) {
      const inPath = operation.parameters.filter(parameter => parameter.in === 'path').map(({ name }) => name)
      expect(inPath).toEqual(path.includes('{id}') ? ['id'] : [])
    }
  })

  it('documents every code somewhere', () => {
    const text = JSON.stringify(document.paths)
    expect(Object.keys(problems).filter(code => !text.includes(`"${code}"`))).toEqual([])
  })

  it('refers only to what it has', () => {
    const text = JSON.stringify(document)
    for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      expect(document).toHaveProperty(['components', 'schemas', name ?? ''])
    }
    expect(text).not.toContain('$schema')
  })
})
