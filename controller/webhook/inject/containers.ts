/**
 * The containers and volumes of a sidecar, as they are added to a pod. Pure.
 *
 * None has a liveness or readiness probe: a failed one would run the preStop hook in a pod that is not ending, or take an application out of its Service
 * whose sidecar lacks a certificate. shipmate-init restarts an agent that does not answer.
 */
import { installedCommand, nodeEnvironment, unset } from '../../../shared/launch.ts'
import { secretNameOf } from '../../app/trust/app-secret.ts'
import { configNameOf } from '../../app/trust/lifecycle-config.ts'
import { installerName, mountPaths, ports, sidecarName, stateFolder, volumeNames } from './places.ts'
import type { Container, Mount, Resources, Security, Volume } from './template.ts'

export interface SidecarPlan {
  readonly app: string
  readonly lifecycle: string
  /** Of Shipmate's own image. */
  readonly image: string
  /** The container whose image the sidecar uses. Undefined: its own. */
  readonly like: Container | undefined
  /** An init container that goes on beside the others. */
  readonly isNative: boolean
  /** Of the application's volumes. */
  readonly mounts: readonly Mount[]
  readonly resources: Resources
  readonly security: Security
  /** Of what installs the agent. */
  readonly ownSecurity: Security
}

const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })

export function sidecarContainer({
  lifecycle,
  image,
  like,
  isNative,
  mounts,
  resources,
  security,
}: SidecarPlan): Container {
  const { agent } = mountPaths
  const init = like ? `${agent}/shipmate-init` : 'shipmate-init'
  const pullPolicy = like ? like.imagePullPolicy : 'IfNotPresent'
  return {
    name: sidecarName,
    image: like?.image ?? image,
    ...(pullPolicy !== undefined && { imagePullPolicy: pullPolicy }),
    ...(isNative && { restartPolicy: 'Always' }),
    ...(like && { command: installedCommand(agent, { loader: true }) }),
    args: [
      ...['--config', `${mountPaths.lifecycle}/lifecycle.yaml`],
      ...['--state-dir', stateFolder],
      ...['--tls-dir', mountPaths.tls],
    ],
    ports: [
      { name: 'sidecar', containerPort: ports.api },
      { name: 'sidecar-public', containerPort: ports.public },
    ],
    env: [
      field('POD_NAME', 'metadata.name'),
      field('POD_NAMESPACE', 'metadata.namespace'),
      field('POD_UID', 'metadata.uid'),
      { name: 'SHIPMATE_LIFECYCLE', value: lifecycle },
      ...(like ? Object.entries({ ...nodeEnvironment, ...unset }).map(([name, value]) => ({ name, value })) : []),
    ],
    lifecycle: { preStop: { exec: { command: [init, 'prestop', '--state-dir', stateFolder] } } },
    resources,
    securityContext: security,
    volumeMounts: [
      { name: volumeNames.state, mountPath: mountPaths.state },
      { name: volumeNames.lifecycle, mountPath: mountPaths.lifecycle, readOnly: true },
      { name: volumeNames.tls, mountPath: mountPaths.tls, readOnly: true },
      ...(like ? [{ name: volumeNames.agent, mountPath: agent, readOnly: true }] : []),
      ...mounts,
    ],
  }
}

/** Copies the agent into a volume, where the sidecar is to use the application's image. */
export function installerContainer({ image, resources, ownSecurity }: SidecarPlan): Container {
  return {
    name: installerName,
    image,
    imagePullPolicy: 'IfNotPresent',
    command: ['shipmate', 'install-agent', mountPaths.agent],
    resources,
    securityContext: ownSecurity,
    volumeMounts: [{ name: volumeNames.agent, mountPath: mountPaths.agent }],
  }
}

/** Those of the API server's are optional: a controller that is down never holds a pod. The state is on disk, and no limit of its evicts the application. */
export function sidecarVolumes({ app, lifecycle, like }: SidecarPlan): Volume[] {
  return [
    { name: volumeNames.state, emptyDir: {} },
    { name: volumeNames.lifecycle, configMap: { name: configNameOf(lifecycle), optional: true } },
    { name: volumeNames.tls, secret: { secretName: secretNameOf(app), optional: true } },
    ...(like ? [{ name: volumeNames.agent, emptyDir: {} }] : []),
  ]
}
