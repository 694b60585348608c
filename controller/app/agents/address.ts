/**
 * Where a sidecar is, and the name under which it must be known.
 */
export interface AppRef {
  readonly namespace: string
  readonly name: string
}

export interface PodAddress {
  readonly app: AppRef
  readonly pod: { readonly name: string; readonly uid: string }
  readonly ip: string
  /** 7443, or what the pod's annotation `shipmate.dev/api-port` says. */
  readonly port: number
}

/** The one name in the certificate of an app's sidecars. */
export const serverNameOf = ({ namespace, name }: AppRef) => `${name}.${namespace}.sidecar.shipmate.dev`

/** The name in the controller's own certificate. */
export const controllerName = 'controller.shipmate.dev'

export const appKey = ({ namespace, name }: AppRef) => `${namespace}/${name}`
