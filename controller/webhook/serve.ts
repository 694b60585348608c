/**
 * Shipmate's webhooks in its controller's process: served on every replica, under the names by which deploy/ registers them.
 */
import { addWebhooks, type Manager, serviceNameOf } from '../runtime/index.ts'
import { shipmateHooks } from './hooks.ts'
import type { Settings } from './inject/inject.ts'

/** Of both registrations; the Service and the Secret are called after it. */
const registration = 'shipmate'

export interface AdmissionOptions {
  /** The controller's own. */
  readonly namespace: string
  readonly port: number
  /** A folder with `tls.crt` and `tls.key`, which somebody else keeps. Default: none, certificates are made. */
  readonly certDir?: string | undefined
  /** Of the sidecars that pods get. */
  readonly settings: Settings
}

export function addAdmission(manager: Manager, { namespace, port, certDir, settings }: AdmissionOptions): void {
  addWebhooks(manager, {
    name: registration,
    hooks: shipmateHooks({ client: manager.client, settings }),
    listen: { port },
    certDir,
    place: { service: { name: serviceNameOf(registration), namespace } },
    secret: { namespace },
  })
}
