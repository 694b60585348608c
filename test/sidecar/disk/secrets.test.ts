/**
 * Secret parameters are nowhere but in the file that their run reads: not on the disk, not in answers, events or the log, whatever the run prints and whoever crashes.
 */
import { existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { read } from '../../fixtures/sidecar-reader.ts'
import { type AgentProcess, start, temporary } from '../soak/process.ts'

const secret = 'S3cr€t "word"\\/+& 100%'
/** As it may be spelled by those who print it. */
const spelled = {
  plain: secret,
  json: JSON.stringify(secret).slice(1, -1),
  asciiJson: JSON.stringify(secret).slice(1, -1).replace('€', '\\u20ac'),
  url: encodeURIComponent(secret),
  lowerUrl: encodeURIComponent(secret).replace(/%[0-9A-F]{2}/g, code => code.toLowerCase()),
  form: new URLSearchParams({ '': secret }).toString().slice(1),
  base64: Buffer.from(secret).toString('base64'),
  unpadded: Buffer.from(secret).toString('base64').replace(/=+$/, ''),
  base64url: Buffer.from(secret).toString('base64url'),
  hex: Buffer.from(secret).toString('hex'),
}

/** Prints it in every way: whole, byte by byte, in pieces between which others may look, as progress and as result. */
const printer = `
  const { readFileSync, writeFileSync, existsSync } = require('node:fs')
  const { setTimeout: wait } = require('node:timers/promises')
  const [folder, spelled] = [process.argv[1], JSON.parse(process.argv[2])]
  const word = readFileSync(process.env.SHIPMATE_PARAM_FILE_WORD, 'utf8')
  if (word !== process.env.WORD) throw new Error('the variable has another one')
  ;(async () => {
    for (const text of Object.values(spelled).map(shift => Buffer.from(shift, 'base64').map(byte => byte ^ 1).toString())) {
      console.log('log: ' + text + ' end')
      console.error('err: ' + text)
      process.stdout.write(text.slice(0, 3))
      await wait(20)
      process.stdout.write(text.slice(3) + '\\n')
    }
    console.log(JSON.stringify({ progress: { percent: 50, message: word } }))
    console.log(JSON.stringify({ result: { word, list: [word, 'x' + word + 'x'], [word]: 1 } }))
    writeFileSync(folder + '/result', JSON.stringify({ word }))
    writeFileSync(folder + '/printed', '')
    while (!existsSync(folder + '/go')) await wait(20)
    console.log(word)
    process.exitCode = 3
  })()
`

const params = { word: { type: 'string', minLength: 5, writeOnly: true } }
/** So that the configuration has none of them. */
const hidden = Object.fromEntries(
  Object.entries(spelled).map(([name, text]) => [
    name,
    Buffer.from(Buffer.from(text).map(byte => byte ^ 1)).toString('base64'),
  ]),
)

function configOf(folder: string, port: number) {
  const exec = { command: [process.execPath, '-e', printer, folder, JSON.stringify(hidden)] }
  const common = { params, secretEnv: { WORD: 'word' }, timeout: '1m', shared: true }
  return {
    actions: [
      {
        name: 'print',
        exec,
        ...common,
        verify: { exec: { command: ['sh', '-c', 'cat "$SHIPMATE_PARAM_FILE_WORD"; exit 3'] } },
      },
      { name: 'file', exec, ...common, result: { file: join(folder, 'result') } },
      { name: 'last', exec, ...common, result: { lastLine: true } },
      { name: 'steps', steps: [{ exec }], ...common },
      {
        name: 'http',
        http: {
          url: `http://127.0.0.1:${port}/echo`,
          method: 'POST',
          headers: { 'x-word': '$(params.token)' },
          body: '{"word": "$(params.token)"}',
          poll: { every: '100ms', until: 'false', failed: 'true' },
        },
        params: { token: { type: 'string', writeOnly: true } },
        shared: true,
      },
    ],
  }
}

const options = { timeout: 60_000 }

test.each(['print', 'file', 'last', 'steps'])('while %s runs, and afterwards', options, async action => {
  const { folder, agent, letGo, heard } = await begin()
  expect((await agent.put('one', action, { word: secret })).status).toBe(201)
  await printed(folder)
  expect(found(agent.stateDir)).toEqual([
    join('runs/one', ...(action === 'steps' ? ['steps/0'] : []), 'params/word: plain'),
  ])
  letGo()
  expect((await agent.ended('one')).phase).toBe('Failed')
  expect((await agent.put('one', action, { word: secret })).status).toBe(200)
  await nowhere(agent, heard())
})

test.each(['print', 'file', 'last', 'steps'])(
  'when the agent is killed while %s runs, and its successor sees the end',
  options,
  async action => {
    const { folder, config, agent, letGo, heard } = await begin()
    await agent.put('one', action, { word: secret })
    await printed(folder)
    await agent.kill()
    const next = await start({ config, stateDir: agent.stateDir })
    letGo()
    await next.ended('one')
    await nowhere(next, heard())
    expect(leaks(agent.output())).toEqual([])
  },
)

test('when the agent and the wrapper are killed', options, async () => {
  const { folder, config, agent, heard } = await begin()
  await agent.put('one', 'print', { word: secret })
  await printed(folder)
  const { pid } = JSON.parse(readFileSync(join(agent.stateDir, 'runs/one/claim'), 'utf8'))
  await agent.kill()
  process.kill(pid, 'SIGKILL')
  const next = await start({ config, stateDir: agent.stateDir })
  expect((await next.ended('one')).phase).toBe('Unknown')
  const verified = await next.ask('POST', '/v1/verify', {
    body: { runId: 'one', action: 'print', params: { word: secret } },
  })
  expect(verified.json).toEqual({ outcome: 'Unknown' })
  await nowhere(next, heard())
})

test('what is refused does not repeat it', options, async () => {
  const { agent, heard } = await begin()
  const bodies = [
    { action: 'print', params: { word: secret, other: secret.length } },
    { action: 'print', params: { word: { a: secret } } },
    { action: 'print', params: { word: [secret] } },
    { action: 'print', params: { word: secret }, podUid: 'another' },
    { action: 'print', params: { word: `${secret}\0` }, timeout: 'soon' },
    `{"action":"print","params":{"word":${JSON.stringify(secret)}`,
  ]
  for (const body of bodies) {
    const { status, text } = await agent.ask('PUT', '/v1/runs/one', { body })
    expect(status).toBeGreaterThanOrEqual(400)
    expect(leaks(text)).toEqual([])
  }
  await nowhere(agent, heard())
})

test('when a server to which it was sent answers with it', options, async () => {
  const token = 'S3cr3t-token/+'
  const server = createServer((request, response) => {
    const { 'x-word': word = '' } = request.headers
    response
      .writeHead(202, { location: `/jobs/${word}`, 'content-type': 'application/json' })
      .end(JSON.stringify({ word }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { agent, heard } = await begin((server.address() as AddressInfo).port)
  await agent.put('one', 'http', { token })
  const run = await agent.ended('one')
  expect(run.phase).toBe('Failed')
  const texts = [JSON.stringify(run), heard(), agent.output(), (await agent.ask('GET', '/v1/runs/one/log')).text]
  for (const text of texts) expect(text).not.toContain(token)
  expect(
    files(agent.stateDir).filter(path => lstatSync(path).isFile() && readFileSync(path, 'latin1').includes(token)),
  ).toEqual([])
})

test.each(['000', '022', '077'])('with umask %s nobody else can read the folder', options, async umask => {
  const { folder, agent, letGo } = await begin(0, umask)
  await agent.put('one', 'steps', { word: secret })
  await printed(folder)
  const open = () => files(agent.stateDir).filter(path => (lstatSync(path).mode & 0o077) !== 0)
  expect(open()).toEqual([])
  letGo()
  await agent.ended('one')
  expect(open()).toEqual([])
  expect(files(agent.stateDir).length).toBeGreaterThan(8)
})

async function begin(port = 9, umask?: string) {
  const folder = temporary()
  const config = configOf(folder, port)
  const agent = await start({ config, umask })
  const reader = await read(agent.port)
  return {
    folder,
    config,
    agent,
    letGo: () => writeFileSync(join(folder, 'go'), ''),
    heard: () => JSON.stringify(reader.heard),
  }
}

async function printed(folder: string): Promise<void> {
  await expect.poll(() => existsSync(join(folder, 'printed')), { timeout: 20_000 }).toBe(true)
}

async function nowhere(agent: AgentProcess, heard: string): Promise<void> {
  expect(found(agent.stateDir)).toEqual([])
  for (const path of ['/v1/runs', '/v1/runs/one', '/v1/runs/one/log', '/v1/state', '/v1/actions'])
    expect({ path, leaks: leaks((await agent.ask('GET', path)).text) }).toEqual({ path, leaks: [] })
  expect({ heard: leaks(heard), log: leaks(agent.output()) }).toEqual({ heard: [], log: [] })
  expect(files(join(agent.stateDir, 'verify')).slice(1)).toEqual([])
}

/** Which spellings a text has, also within JSON. */
function leaks(text: string): string[] {
  return Object.entries(spelled)
    .filter(([, spelling]) => text.includes(spelling) || text.includes(JSON.stringify(spelling).slice(1, -1)))
    .map(([name]) => name)
}

/** In which files of the folder it is, and how. */
function found(stateDir: string): string[] {
  return files(stateDir)
    .filter(path => lstatSync(path).isFile())
    .flatMap(path => leaks(readFileSync(path, 'utf8')).map(name => `${path.slice(stateDir.length + 1)}: ${name}`))
}

/** The folder itself and everything in it. */
function files(folder: string): string[] {
  if (!existsSync(folder)) return []
  return [folder, ...readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(name => join(folder, name))]
}
