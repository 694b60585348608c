/**
 * The names and places of what injection adds to a pod. No mount stands inside another one: what is mounted in a read-only volume needs a folder there.
 */
export { sidecarName } from '../../app/workload/marks.ts'

export const installerName = 'shipmate-install-agent'

/** Volumes, by their names in the pod. */
export const volumeNames = {
  state: 'shipmate-state',
  lifecycle: 'shipmate-lifecycle',
  tls: 'shipmate-tls',
  /** The agent itself, where the sidecar uses the application's image. */
  agent: 'shipmate-agent',
} as const

/** Where they are mounted in the sidecar. */
export const mountPaths = {
  state: '/var/lib/shipmate',
  lifecycle: '/etc/shipmate/lifecycle',
  tls: '/etc/shipmate/tls',
  agent: '/shipmate',
} as const

/** A folder of the agent's own in the volume, which is not its own. */
export const stateFolder = `${mountPaths.state}/state`

export const ports = { api: 7443, public: 7080 } as const
