/**
 * The preStop hooks of the application's containers: each is held until the sidecar's own has done its work. Pure.
 */
import { ports } from './places.ts'
import type { Container } from './template.ts'

const path = '/prestop'

/** With the hook, if it has none of its own. */
export function withHook(container: Container): Container {
  if (container.lifecycle?.preStop) return container
  const preStop = { httpGet: { path, port: ports.public } }
  return { ...container, lifecycle: { ...container.lifecycle, preStop } }
}

/** Whether it has a hook that is not ours: that one is kept. */
export function hasOwnHook({ lifecycle }: Container): boolean {
  const preStop = lifecycle?.preStop
  return (
    preStop !== undefined &&
    preStop !== null &&
    !(preStop.httpGet?.path === path && preStop.httpGet.port === ports.public)
  )
}
