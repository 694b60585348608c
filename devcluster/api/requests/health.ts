/**
 * `/healthz`, `/livez`, `/readyz` and `/version`.
 */
import type { ApiRequest, ApiResponse } from '../types.ts'
import { plainAnswer } from './answer.ts'

const checks = ['ping', 'log', 'etcd', 'informer-sync']
/** What clients are told: the version whose manners this server has. */
const serverVersion = 'v1.36.0'

export function health({ path, query, method }: ApiRequest): ApiResponse | undefined {
  if (method !== 'GET') return undefined
  if (path === '/version' || path === '/version/') return version()
  const [, root = '', check, ...more] = path.split('/')
  if (!['healthz', 'livez', 'readyz'].includes(root) || more.length > 0) return undefined
  if (check) return checks.includes(check) ? plainAnswer(200, 'ok') : undefined
  if (!query.has('verbose')) return plainAnswer(200, 'ok')
  return plainAnswer(200, `${checks.map(name => `[+]${name} ok\n`).join('')}${root} check passed\n`)
}

function version(): ApiResponse {
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(serverVersion) ?? []
  const body = {
    major,
    minor,
    emulationMajor: major,
    emulationMinor: minor,
    minCompatibilityMajor: major,
    minCompatibilityMinor: String(Number(minor) - 1),
    gitVersion: serverVersion,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: process.version,
    compiler: 'node',
    platform: `${process.platform}/${process.arch}`,
  }
  return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}
