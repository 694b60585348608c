/**
 * Under whom the added containers run. Each passes the restricted pod security standard wherever the pod's own do, and names no user id by itself, so that
 * OpenShift gives it one (group 0). Pure.
 */
import type { Container, PodSpec, Security } from './template.ts'

/** Of the sidecar's own image. */
const ownUser = 65_532

const restricted: Security = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
}

/** In its own image, which is nobody's by number. @param user what was asked for */
export function ownSecurity(spec: PodSpec, user?: number): Security {
  // The pod's own choice is root's, and nothing here needs root.
  const uid = user ?? (spec.securityContext?.runAsUser === 0 ? ownUser : undefined)
  return {
    ...restricted,
    readOnlyRootFilesystem: true,
    runAsNonRoot: uid !== 0,
    ...(uid !== undefined && { runAsUser: uid }),
  }
}

/** In the application's image: as its container, so that its tools find what they find there. */
export function likeContainer({ securityContext = {} }: Container, user?: number): Security {
  const { readOnlyRootFilesystem, runAsGroup, runAsNonRoot, runAsUser, seLinuxOptions } = securityContext
  const uid = user ?? runAsUser
  return {
    ...restricted,
    ...(readOnlyRootFilesystem !== undefined && { readOnlyRootFilesystem }),
    ...(runAsNonRoot !== undefined && { runAsNonRoot }),
    ...(user === 0 && { runAsNonRoot: false }),
    ...(uid !== undefined && { runAsUser: uid }),
    ...(runAsGroup !== undefined && { runAsGroup }),
    ...(seLinuxOptions && { seLinuxOptions }),
  }
}

/** Whether it is known, from the pod alone, under which user id a container runs. */
export function saysUser(spec: PodSpec, container: Container): boolean {
  const { securityContext } = container
  return [securityContext, spec.securityContext].some(
    one => one?.runAsUser !== undefined || one?.runAsNonRoot !== undefined,
  )
}
