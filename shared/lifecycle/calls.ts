/**
 * Whether probes and actions can be carried out as they are declared. Pure.
 */
import { parseDuration } from '../duration.ts'
import { messageOf } from '../errors.ts'
import { shown, suggestion } from '../nearest.ts'
import { patternProblem, schemaFindings } from '../params/keywords.ts'
import { defaultProblem, isRequired, isSecret } from '../params/schema.ts'
import { type Mode, mistakenReferencesOf, paramEnvName, paramFileEnvName, referencesOf } from '../params/template.ts'
import { compileCondition } from './guard.ts'
import type { Action, HttpCall, LifecycleSpec, ParamSchema, Probe, Step } from './model.ts'
import { error, type Finding, warning } from './shape.ts'

type Path = (string | number)[]
type Params = Readonly<Record<string, ParamSchema>>

/** Shorter is a busy loop. */
const shortestEvery = 100
const mostOutput = 5 * 1024 * 1024
const sharedNamespace = 'needs a pod with `shareProcessNamespace: true`'

export function probeFindings(probe: Probe, path: Path): Finding[] {
  const found = exactlyOne(probe, ['exec', 'http', 'tcp', 'file', 'process'], path)
  if (probe.exec) found.push(...commandFindings(probe.exec.command, {}, [...path, 'exec', 'command']))
  if (probe.http) found.push(...httpFindings(probe.http, {}, [...path, 'http']))
  if (probe.file?.pattern !== undefined) {
    found.push(...patternFindings(probe.file.pattern, [...path, 'file', 'pattern']))
    if (probe.file.exists === false) {
      found.push(error([...path, 'file', 'pattern'], 'a file that is not to exist matches nothing'))
    }
  }
  if (probe.process) found.push(warning([...path, 'process'], sharedNamespace))
  found.push(...envFindings(probe.env, [...path, 'env']))
  found.push(...durationFindings(probe, { every: shortestEvery, timeout: 1, initialDelay: 0 }, path))
  return found
}

export function actionFindings(action: Action, path: Path): Finding[] {
  const params = action.params ?? {}
  const found = exactlyOne(action, ['exec', 'http', 'signal', 'steps', 'reload'], path)
  found.push(...paramFindings(params, [...path, 'params']), ...callFindings(action, params, path))
  for (const [index, step] of (action.steps ?? []).entries()) {
    const at = [...path, 'steps', index]
    found.push(...exactlyOne(step, ['exec', 'http', 'signal', 'fileChanged'], at), ...callFindings(step, params, at))
  }
  if (action.reload) {
    const at = [...path, 'reload']
    found.push(...exactlyOne(action.reload, ['exec', 'http', 'signal'], at), ...callFindings(action.reload, params, at))
    found.push(...fileFindings(action.reload.file, params, [...at, 'file']))
  }
  if (action.verify) {
    const at = [...path, 'verify']
    found.push(...exactlyOne(action.verify, ['exec', 'http'], at), ...callFindings(action.verify, params, at))
    found.push(...durationFindings(action.verify, { timeout: 1 }, at))
  }
  found.push(...secretEnvFindings(action, params, [...path, 'secretEnv']), ...envFindings(action.env, [...path, 'env']))
  found.push(...durationFindings(action, { timeout: 1 }, path))
  found.push(...durationFindings(action.cancel ?? {}, { grace: 0 }, [...path, 'cancel']))
  if (action.progress) found.push(...progressFindings(action.progress.pattern, [...path, 'progress', 'pattern']))
  if (action.result?.file !== undefined && action.result.lastLine) {
    found.push(error([...path, 'result'], 'the result is either in a `file` or in the `lastLine`'))
  }
  for (const [field, text] of [
    ['workingDir', action.workingDir],
    ['description', action.description],
  ] as const) {
    found.push(...notReplaced(text, [...path, field]))
  }
  found.push(...templateFindings(action.result?.file ?? '', params, 'argument', [...path, 'result', 'file']))
  found.push(...outputFindings(action.limits?.output, [...path, 'limits', 'output']))
  return found
}

export function preStopFindings({ preStop, actions = [] }: LifecycleSpec): Finding[] {
  if (preStop === undefined) return []
  const action = actions.find(one => one.name === preStop)
  const names = actions.map(one => one.name)
  if (!action) return [error(['preStop'], `${shown(preStop)} is no action${suggestion(preStop, names)}`)]
  const needed = Object.entries(action.params ?? {}).filter(([, schema]) => isRequired(schema))
  if (needed.length === 0) return []
  const list = needed.map(([name]) => name).join(', ')
  return [error(['preStop'], `${shown(preStop)} needs ${list}, and nobody is there to give it: let it have a default`)]
}

function exactlyOne(value: object, kinds: readonly string[], path: Path): Finding[] {
  const given = kinds.filter(kind => Object.hasOwn(value, kind))
  if (given.length === 1) return []
  if (given.length === 0) return [error(path, `needs one of ${kinds.join(', ')}`)]
  return [error([...path, given[1] ?? ''], `${given.join(' and ')} together: one of them is wanted`)]
}

function callFindings(
  call: Partial<Omit<Step, 'http'>> & { http?: HttpCall | undefined },
  params: Params,
  path: Path,
): Finding[] {
  const found: Finding[] = []
  if (call.exec) found.push(...commandFindings(call.exec.command, params, [...path, 'exec', 'command']))
  if (call.http) found.push(...httpFindings(call.http, params, [...path, 'http']))
  if (call.signal) {
    found.push(
      warning([...path, 'signal'], sharedNamespace),
      ...notReplaced(call.signal.process, [...path, 'signal', 'process']),
    )
  }
  if (call.fileChanged) found.push(...fileFindings(call.fileChanged, params, [...path, 'fileChanged']))
  return found
}

function commandFindings(command: readonly string[], params: Params, path: Path): Finding[] {
  const [program = ''] = command
  const found = command.flatMap((argument, index) => templateFindings(argument, params, 'argument', [...path, index]))
  if (program === '') found.push(error([...path, 0], 'the program has no name'))
  for (const [index, argument] of command.entries()) {
    if (argument.includes('\0')) found.push(error([...path, index], 'no argument can hold a NUL'))
  }
  return found
}

function httpFindings(call: HttpCall, params: Params, path: Path): Finding[] {
  const found = urlFindings(call.url, params, [...path, 'url'])
  for (const [name, value] of Object.entries(call.headers ?? {})) {
    const at = [...path, 'headers', name]
    if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name)) found.push(error(at, `${shown(name)} is no name of a header`))
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) found.push(error(at, `${shown(value)} has what no header can hold`))
    found.push(...templateFindings(value, params, 'header', at))
  }
  if (call.body !== undefined) {
    found.push(...templateFindings(call.body, params, 'body', [...path, 'body']))
    if (['GET', 'HEAD'].includes(call.method ?? 'GET')) {
      found.push(error([...path, 'body'], `a ${call.method ?? 'GET'} has no body: give it a \`method\` such as POST`))
    }
  }
  found.push(...durationFindings(call, { timeout: 1 }, path))
  if (call.poll) {
    const at = [...path, 'poll']
    if (call.poll.url !== undefined) found.push(...urlFindings(call.poll.url, params, [...at, 'url']))
    found.push(...conditionFindings(call.poll.until, [...at, 'until']))
    if (call.poll.failed !== undefined) found.push(...conditionFindings(call.poll.failed, [...at, 'failed']))
    found.push(...durationFindings(call.poll, { every: shortestEvery }, at))
  }
  return found
}

function urlFindings(url: string, params: Params, path: Path): Finding[] {
  const found = templateFindings(url, params, 'url', path)
  const authority = /^https?:\/\/([^/?#\\]*)/i.exec(url)?.[1]
  if (authority === undefined) return [...found, error(path, `${shown(url)} does not begin with http:// or https://`)]
  if (referencesOf(authority).length > 0) {
    found.push(warning(path, 'who gives the parameter chooses which server is called'))
  } else if (!URL.canParse(url)) {
    found.push(error(path, `${shown(url)} is no URL`))
  } else if (authority.includes('@')) {
    found.push(error(path, 'a URL with a password in it ends up in logs: send a header'))
  }
  return found
}

function fileFindings({ path: file, sha256 }: NonNullable<Step['fileChanged']>, params: Params, path: Path): Finding[] {
  const found = notReplaced(file, [...path, 'path'])
  if (sha256 === undefined) return found
  found.push(...templateFindings(sha256, params, 'argument', [...path, 'sha256']))
  if (referencesOf(sha256).length === 0 && !/^[0-9a-f]{64}$/i.test(sha256)) {
    found.push(error([...path, 'sha256'], `${shown(sha256)} is no SHA-256: 64 hex digits, or $(params.NAME)`))
  }
  return found
}

function templateFindings(template: string, params: Params, mode: Mode, path: Path): Finding[] {
  const found = mistakenReferencesOf(template).map(text =>
    error(path, `${shown(text)} is replaced by nothing: write $(params.NAME), or $$( for a literal $(`),
  )
  for (const name of referencesOf(template)) {
    const schema = Object.hasOwn(params, name) ? params[name] : undefined
    if (!schema) {
      found.push(error(path, `$(params.${name}) is not declared${suggestion(name, Object.keys(params))}`))
    } else if (mode === 'argument' || mode === 'url') {
      const where = mode === 'url' ? 'a URL' : 'an argument'
      if (isSecret(schema)) {
        const instead =
          mode === 'url'
            ? 'send it in a header or in the body'
            : `read the file that ${paramFileEnvName(name)} names, or use secretEnv`
        found.push(error(path, `${name} is secret, and ${where} can be seen by others: ${instead}`))
      } else if (!isRequired(schema) && !Object.hasOwn(schema, 'default')) {
        found.push(error(path, `${name} may be absent, and then ${where} cannot be made: give it a default`))
      }
    }
  }
  return found
}

function notReplaced(text: string | undefined, path: Path): Finding[] {
  const [name] = referencesOf(text ?? '')
  return name === undefined ? [] : [warning(path, `$(params.${name}) is not replaced here`)]
}

function paramFindings(params: Params, path: Path): Finding[] {
  const found: Finding[] = []
  const variables = new Map<string, string>()
  for (const [name, schema] of Object.entries(params)) {
    const at = [...path, name]
    const findings = schemaFindings(schema, at, true)
    found.push(...findings.map(({ path, message }) => error(path, message)))
    if (isSecret(schema) && Object.hasOwn(schema, 'default')) {
      found.push(error([...at, 'default'], 'a secret cannot have a default: it would stand here for all to read'))
    } else if (findings.length === 0) {
      const problem = defaultProblem(name, schema)
      if (problem !== undefined) found.push(error([...at, 'default'], problem))
    }
    if (schema['required'] === true && Object.hasOwn(schema, 'default')) {
      found.push(error([...at, 'required'], 'a parameter that must be given has no use for a default'))
    }
    const variable = isSecret(schema) ? paramFileEnvName(name) : paramEnvName(name)
    const other = variables.get(variable)
    if (other !== undefined) found.push(error(at, `${name} and ${other} would both be the variable ${variable}`))
    else variables.set(variable, name)
  }
  return found
}

function secretEnvFindings({ env = {}, secretEnv = {} }: Action, params: Params, path: Path): Finding[] {
  const found = envFindings(secretEnv, path)
  const secrets = Object.keys(params).filter(name => isSecret(params[name] ?? {}))
  for (const [variable, name] of Object.entries(secretEnv)) {
    const at = [...path, variable]
    if (Object.hasOwn(env, variable)) found.push(error(at, `${variable} stands in env as well`))
    if (secrets.includes(name)) continue
    const known = Object.hasOwn(params, name)
    const message = known
      ? `${shown(name)} is not secret: declare it \`writeOnly: true\``
      : `${shown(name)} is no secret parameter${suggestion(name, secrets)}`
    found.push(error(at, message))
  }
  return found
}

function envFindings(env: Readonly<Record<string, string>> = {}, path: Path): Finding[] {
  return Object.entries(env).flatMap(([variable, value]) => {
    const at = [...path, variable]
    const found = notReplaced(value, at)
    if (variable.startsWith('SHIPMATE_'))
      found.push(error(at, 'variables that begin with SHIPMATE_ are set by the agent'))
    if (value.includes('\0')) found.push(error(at, 'no variable can hold a NUL'))
    return found
  })
}

function durationFindings(value: object, fields: Readonly<Record<string, number>>, path: Path): Finding[] {
  return Object.entries(fields).flatMap(([field, least]) => {
    const text: unknown = Reflect.get(value, field)
    if (typeof text !== 'string') return []
    const ms = parseDuration(text)
    if (ms === undefined) return [error([...path, field], `${shown(text)} is longer than can be counted`)]
    return ms < least ? [error([...path, field], `${shown(text)} is too short: at least ${least}ms`)] : []
  })
}

function conditionFindings(text: string, path: Path): Finding[] {
  try {
    compileCondition(text)
    return []
  } catch (thrown) {
    return [error(path, messageOf(thrown))]
  }
}

function patternFindings(pattern: string, path: Path): Finding[] {
  const problem = patternProblem(pattern, '')
  return problem === undefined ? [] : [error(path, problem)]
}

function progressFindings(pattern: string, path: Path): Finding[] {
  const found = patternFindings(pattern, path)
  // With nothing to match it matches the empty text, and tells how many groups there are.
  if (found.length === 0 && new RegExp(`${pattern}|`).exec('')?.length === 1) {
    found.push(error(path, `${shown(pattern)} has no group ( ) around the percentage`))
  }
  return found
}

function outputFindings(size: string | undefined, path: Path): Finding[] {
  if (size === undefined) return []
  const bytes = Number.parseInt(size, 10) * (size.endsWith('Mi') ? 1024 * 1024 : 1024)
  return bytes > mostOutput ? [error(path, `${shown(size)} is too much: at most 5Mi`)] : []
}
