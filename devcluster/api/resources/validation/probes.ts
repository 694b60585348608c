/**
 * What a kubelet asks of a container: probes, and the hooks of its life.
 */
import type { FieldError } from '../../problems.ts'
import { portName } from '../../schema/names.ts'
import { list } from '../strategies/lists.ts'
import { forbidden, invalid, nonNegative, oneOf, port, required, ruled } from './mistakes.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a client sent.
type Any = any

const counts = ['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold']

/** @param once whether one success is enough, and has to be: of a probe that decides on a restart */
export function validateProbe(probe: Any, path: string, once: boolean): FieldError[] {
  if (!probe) return []
  const errors = validateHandler(probe, path)
  for (const name of counts) errors.push(...nonNegative(`${path}.${name}`, probe[name]))
  if (probe.terminationGracePeriodSeconds <= 0) {
    const field = `${path}.terminationGracePeriodSeconds`
    errors.push(invalid(field, probe.terminationGracePeriodSeconds, 'must be greater than 0'))
  }
  if (once && probe.successThreshold !== 1)
    errors.push(invalid(`${path}.successThreshold`, probe.successThreshold, 'must be 1'))
  return errors
}

const handlers: Readonly<Record<string, (handler: Any, path: string) => FieldError[]>> = {
  exec: ({ command = [] }, path) => (command.length === 0 ? [required(`${path}.command`)] : []),
  httpGet: validateHttpGet,
  tcpSocket: (handler, path) => portOrName(`${path}.port`, handler.port),
  grpc: (handler, path) => port(`${path}.port`, handler.port),
  sleep: () => [],
}

/** Of a probe or a hook: exactly one way to ask. */
export function validateHandler(handler: Any, path: string): FieldError[] {
  const [first, ...more] = Object.keys(handlers).filter(name => handler[name])
  if (first === undefined) return [required(path, 'must specify a handler type')]
  return [
    ...(handlers[first]?.(handler[first], `${path}.${first}`) ?? []),
    ...more.map(name => forbidden(`${path}.${name}`, 'may not specify more than 1 handler type')),
  ]
}

const header = /^[-A-Za-z0-9]+$/
const headerMessage =
  "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"

function validateHttpGet(http: Any, path: string): FieldError[] {
  return [
    ...(http.path ? [] : [required(`${path}.path`)]),
    ...portOrName(`${path}.port`, http.port),
    ...oneOf(`${path}.scheme`, http.scheme, ['HTTP', 'HTTPS']),
    ...list(http.httpHeaders)
      .filter(({ name = '' }) => !header.test(name))
      .map(({ name = '' }) => invalid(`${path}.httpHeaders`, name, headerMessage)),
  ]
}

/** A port by its number, or by the name that a container has for it. */
export const portOrName = (field: string, value: unknown): FieldError[] =>
  typeof value === 'string' ? ruled(field, value, portName) : port(field, value)
