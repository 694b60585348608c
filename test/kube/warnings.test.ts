import { expect, test } from 'vitest'
import type { Request, Response } from '../../controller/kube/transport.ts'
import { warnings } from '../../controller/kube/warnings.ts'

const request: Request = { method: 'GET', path: '/', target: { verb: 'get', group: '', resource: 'pods' } }

async function said(...headers: Response['headers'][]): Promise<string[]> {
  const texts: string[] = []
  const rest = [...headers]
  const send = warnings(text => texts.push(text))(async () => ({ status: 200, text: '', headers: rest.shift() ?? {} }))
  for (const _ of headers) await send(request)
  return texts
}

test('what the server warns of is said once', async () => {
  const unknown = { warning: '299 - "unknown field \\"status.phaze\\""' }
  expect(await said(unknown, {}, unknown)).toEqual(['unknown field "status.phaze"'])
})

test('several warnings in one answer are told apart', async () => {
  const one = '299 - "a, \\"b\\"", 299 - "c"'
  expect(await said({ warning: one }, { warning: ['299 - "d"', '299 - "e"'] })).toEqual(['a, "b"', 'c', 'd', 'e'])
})

test('nonsense is no warning', async () => {
  expect(await said({ warning: 'nonsense' }, { warning: '' }, {})).toEqual([])
})
