/**
 * What a kubelet asks of a container: by a command, over HTTP, by a connection. For probes and for hooks.
 */
import { request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import { connect } from 'node:net'
import type { ContainerSpec, Hook, Probe } from './spec.ts'
import { portNamed } from './spec.ts'

export interface Asker {
  readonly spec: ContainerSpec
  readonly ip: string
  /** The real port of one that the pod declares. */
  port(declared: number): number
  /** Runs a command in the container. */
  run(command: readonly string[], signal: AbortSignal): Promise<Ran>
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

export interface Ran {
  /** Undefined: it was ended by the signal. */
  readonly code: number | undefined
  readonly output: string
}

/** Undefined: it is well. Otherwise what is wrong, in the kubelet's words. */
export type Verdict = string | undefined

type Http = NonNullable<Probe['httpGet']>
const longestAnswer = 10 * 1024

export async function askProbe(asker: Asker, probe: Probe, signal: AbortSignal): Promise<Verdict> {
  const seconds = probe.timeoutSeconds ?? 1
  const limit = AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)])
  if (probe.exec) {
    const { code, output } = await asker.run(probe.exec.command ?? [], limit)
    if (code === undefined)
      return `command timed out: "${(probe.exec.command ?? []).join(' ')}" timed out after ${seconds}s`
    return code === 0 ? undefined : output
  }
  if (probe.httpGet) return askHttp(asker, probe.httpGet, limit)
  if (probe.tcpSocket) return askTcp(asker, probe.tcpSocket, limit)
  return probe.grpc ? askTcp(asker, { port: probe.grpc.port }, limit) : undefined
}

/** Resolves when it is done; undefined, or what failed. */
export async function callHook(asker: Asker, hook: Hook, signal: AbortSignal): Promise<Verdict> {
  if (hook.sleep) await asker.sleep(hook.sleep.seconds * 1000, signal)
  if (hook.httpGet) return askHttp(asker, hook.httpGet, signal)
  if (hook.tcpSocket) return askTcp(asker, hook.tcpSocket, signal)
  if (!hook.exec) return undefined
  const { code, output } = await asker.run(hook.exec.command ?? [], signal)
  return code === 0 ? undefined : `command '${(hook.exec.command ?? []).join(' ')}' exited with ${code}: ${output}`
}

function askHttp({ spec, ip, port }: Asker, get: Http, signal: AbortSignal): Promise<Verdict> {
  const number = portNamed(spec, get.port)
  if (number === undefined) return Promise.resolve(`couldn't resolve host port for ${get.port}`)
  const headers: Record<string, string> = { 'user-agent': 'kube-probe/1.36', accept: '*/*', connection: 'close' }
  for (const { name, value } of get.httpHeaders ?? []) headers[name.toLowerCase()] = value
  const at = {
    host: get.host ?? ip,
    port: get.host ? number : port(number),
    path: get.path || '/',
    agent: false,
    signal,
  }
  return new Promise(resolve => {
    const send = get.scheme === 'HTTPS' ? overHttps : overHttp
    // As the kubelet: whose certificate it is does not matter, only that it answers.
    const call = send({ ...at, headers, rejectUnauthorized: false }, response => {
      response.resume()
      const { statusCode = 0 } = response
      resolve(statusCode >= 200 && statusCode < 400 ? undefined : `HTTP probe failed with statuscode: ${statusCode}`)
    })
    call.on('error', error =>
      resolve(`Get "${(get.scheme ?? 'HTTP').toLowerCase()}://${at.host}:${at.port}${at.path}": ${error.message}`),
    )
    call.end()
  })
}

interface Tcp {
  readonly host?: string | undefined
  readonly port: unknown
}

function askTcp({ spec, ip, port }: Asker, { host, port: asked }: Tcp, signal: AbortSignal): Promise<Verdict> {
  const number = portNamed(spec, asked)
  if (number === undefined) return Promise.resolve(`couldn't resolve host port for ${asked}`)
  const at = { host: host ?? ip, port: host ? number : port(number), signal }
  return new Promise(resolve => {
    const socket = connect(at, () => {
      socket.destroy()
      resolve(undefined)
    })
    socket.on('error', error => resolve(`dial tcp ${at.host}:${at.port}: ${error.message}`))
  })
}

/** As much of an output as an event shows. */
export const shortened = (text: string) => Buffer.from(text).subarray(0, longestAnswer).toString().trim()
