/**
 * What a command gets: its environment, its arguments, and secret parameters as files.
 *
 * Guarantee: nothing of the agent's own environment but PATH; a secret is never an argument or a `SHIPMATE_PARAM_` variable.
 */
import { chmod, chown, rm, writeFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { messageOf } from '../../shared/errors.ts'
import type { Action } from '../../shared/lifecycle/model.ts'
import { expand, paramEnvName, paramFileEnvName, textOf } from '../../shared/params/template.ts'
import { makeFolder } from './folder.ts'

/** The parameters of a run: all with defaults filled in, and which of them are secret. */
export interface Params {
  readonly values: Readonly<Record<string, unknown>>
  readonly secrets: readonly string[]
}

export interface Surroundings {
  readonly runId: string
  readonly fence: number | null
  readonly params: Params
  /** The run's folder. */
  readonly folder: string
}

export function environmentOf(action: Action, { runId, fence, params, folder }: Surroundings): Record<string, string> {
  const env: Record<string, string> = { PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin', ...action.env }
  env.SHIPMATE_RUN_ID = runId
  if (fence !== null) env.SHIPMATE_FENCE = String(fence)
  for (const [name, value] of Object.entries(params.values)) {
    if (params.secrets.includes(name)) env[paramFileEnvName(name)] = join(folder, 'params', name)
    else env[paramEnvName(name)] = textOf(value)
  }
  for (const [variable, name] of Object.entries(action.secretEnv ?? {})) {
    if (Object.hasOwn(params.values, name)) env[variable] = textOf(params.values[name])
  }
  return env
}

export function commandOf(command: readonly string[], params: Params): string[] {
  return command.map(argument => expand(argument, params.values, 'argument'))
}

/** Writes the secret parameters where the command finds them. */
export async function writeSecrets(action: Action, { params, folder }: Surroundings, stateDir: string): Promise<void> {
  const given = params.secrets.filter(name => Object.hasOwn(params.values, name))
  if (given.length === 0) return
  await makeFolder(join(folder, 'params'))
  for (const name of given) {
    const path = join(folder, 'params', name)
    await rm(path, { force: true })
    await writeFile(path, textOf(params.values[name]), { mode: 0o400, flag: 'wx' })
    if (action.user) await chown(path, action.user.uid, action.user.gid ?? -1)
  }
  if (action.user) await letThrough(stateDir, folder)
}

/** Others may pass through to a secret whose name they know, no more, and only where another user must read it. */
export async function letThrough(stateDir: string, folder: string): Promise<void> {
  let passed = stateDir
  await chmod(passed, 0o711)
  for (const part of relative(stateDir, join(folder, 'params')).split(sep)) {
    passed = join(passed, part)
    await chmod(passed, 0o711)
  }
}

export async function removeSecrets(folder: string): Promise<void> {
  await rm(join(folder, 'params'), { recursive: true, force: true })
}

/** Each secret as it may be printed: as it is, inside a JSON string, in a URL or a form, in base64, in hex. */
export function spellings(params: Params): string[] {
  const given = params.secrets.filter(name => Object.hasOwn(params.values, name))
  return [...new Set(given.flatMap(name => spellingsOf(textOf(params.values[name]).toWellFormed())))]
}

function spellingsOf(text: string): string[] {
  if (text === '') return []
  const json = JSON.stringify(text).slice(1, -1)
  const url = encodeURIComponent(text)
  const escaped = /[^\x20-\x7e]/g
  const lower = (encoded: string) => encoded.replace(/%[0-9A-F]{2}/g, code => code.toLowerCase())
  const form = new URLSearchParams({ '': text }).toString().slice(1)
  const plain = [
    text,
    json,
    json.replaceAll('/', '\\/'),
    json.replace(escaped, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
    url,
    lower(url),
    form,
    lower(form),
  ]
  const bytes = Buffer.from(text)
  // Of fewer bytes they are too short to mean anything.
  if (bytes.length < 4) return plain
  const hex = bytes.toString('hex')
  const base64 = bytes.toString('base64')
  return [...plain, base64, base64.replace(/=+$/, ''), bytes.toString('base64url'), hex, hex.toUpperCase()]
}

/** A value that somebody answered, without the secrets that it may repeat. */
export function redacted(value: unknown, params: Params | undefined): unknown {
  const secrets = params ? spellings(params) : []
  if (secrets.length === 0 || value === null) return value
  const hide = (text: string) => secrets.reduce((left, secret) => left.replaceAll(secret, '***'), text)
  const deep = (part: unknown): unknown => {
    if (typeof part === 'string') return hide(part)
    if (Array.isArray(part)) return part.map(deep)
    if (typeof part !== 'object' || part === null) return secrets.includes(textOf(part)) ? '***' : part
    return Object.fromEntries(Object.entries(part).map(([key, member]) => [hide(key), deep(member)]))
  }
  return deep(value)
}

/** What went wrong, for the log and for whoever asks: what an error says may repeat what was handed to what failed. */
export function reasonOf(error: unknown, params: Params): string {
  return String(redacted(messageOf(error), params))
}
