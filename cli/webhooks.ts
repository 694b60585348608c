/**
 * What stands on the cluster so that the API server asks an operator's webhooks: a Service, and their registrations. Pure.
 *
 * The bundle of authorities is not part of it: the operator writes that when it has a certificate.
 */
import { Service } from '../controller/kube/kinds.ts'
import { type Hook, registrationsOf, serviceNameOf, type WebhookPlace } from '../controller/runtime/index.ts'
import type { CustomResource } from '../controller/toolkit/index.ts'
import { type Manifest, manifest, ownLabels, type Place } from './manifest.ts'

/** The port of the container, as `run` has it. */
export const webhookPort = { name: 'webhooks', containerPort: 9443 }

export function hooksOf(definitions: readonly CustomResource[]): Hook[] {
  // A module may have an older copy of the toolkit of its own.
  return definitions.flatMap(({ webhooks }) => webhooks ?? [])
}

/** @param lease the name of the operator's process, after which `run` names all of it */
export function webhookPlace(lease: string, namespace: string): WebhookPlace {
  return { service: { name: serviceNameOf(lease), namespace } }
}

export function serviceOf(project: Place, lease: string): Manifest {
  return manifest(Service, {
    metadata: { name: serviceNameOf(lease), namespace: project.namespace, labels: ownLabels(project) },
    spec: {
      selector: { 'app.kubernetes.io/name': project.name },
      ports: [{ name: webhookPort.name, port: 443, targetPort: webhookPort.name }],
    },
  })
}

export function registrationManifests(project: Place, lease: string, hooks: readonly Hook[]): Manifest[] {
  return registrationsOf(hooks, lease, webhookPlace(lease, project.namespace)).map(({ kind, object }) =>
    manifest(kind, { ...object, metadata: { ...object.metadata, labels: ownLabels(project) } }),
  )
}
