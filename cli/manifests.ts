/**
 * All that is on the cluster for an operator, from its code and its setting. Pure.
 */

import type { Kind } from '../controller/kube/kind.ts'
import {
  ClusterRole,
  ClusterRoleBinding,
  CustomResourceDefinition,
  Deployment,
  Namespace,
  Role,
  RoleBinding,
  ServiceAccount,
} from '../controller/kube/kinds.ts'
import { rbacManifests, rbacOf } from '../controller/toolkit/index.ts'
import { type Manifest, manifest, ownLabels, type Place } from './manifest.ts'
import type { Exported } from './module.ts'
import type { Project } from './project.ts'
import { hooksOf, registrationManifests, serviceOf, webhookPlace, webhookPort } from './webhooks.ts'

type Loaded = Exported & { readonly lease: string }

export function namespaceOf({ namespace }: Place): Manifest {
  return manifest(Namespace, { metadata: { name: namespace } })
}

/** With the place of the webhooks that convert between their versions. */
export function crdsOf({ namespace }: Place, { definitions, lease }: Loaded): Manifest[] {
  const place = webhookPlace(lease, namespace)
  return definitions.map(definition => manifest(CustomResourceDefinition, definition.crd(place)))
}

/** The account, its roles and their bindings. */
export function accountOf(project: Place, { operators, lease }: Loaded): Manifest[] {
  const kinds: Kind[] = [ServiceAccount, ClusterRole, ClusterRoleBinding, Role, RoleBinding]
  const objects = rbacManifests(rbacOf(operators, { lease }), project) as Manifest['object'][]
  return objects.flatMap(object => {
    const kind = kinds.find(one => one.kind === object.kind)
    return kind ? manifest(kind, { ...object, metadata: { ...object.metadata, labels: ownLabels(project) } }) : []
  })
}

export function deploymentOf(project: Project, { definitions }: Loaded): Manifest {
  const { name, namespace, image, replicas } = project
  const more = hooksOf(definitions).length > 0 ? [webhookPort] : []
  const selected = { 'app.kubernetes.io/name': name }
  const probe = (path: string) => ({ httpGet: { path, port: 'http' } })
  return manifest(Deployment, {
    metadata: { name, namespace, labels: ownLabels(project) },
    spec: {
      replicas,
      selector: { matchLabels: selected },
      template: {
        metadata: { labels: ownLabels(project) },
        spec: {
          serviceAccountName: name,
          securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
          containers: [
            {
              name: 'operator',
              image,
              imagePullPolicy: 'IfNotPresent',
              // Why it ended stands in the pod's status, where `deploy` finds it.
              terminationMessagePolicy: 'FallbackToLogsOnError',
              ports: [{ name: 'http', containerPort: 8081 }, ...more],
              livenessProbe: probe('/healthz'),
              readinessProbe: { ...probe('/readyz'), periodSeconds: 2 },
              resources: { requests: { cpu: '50m', memory: '96Mi' } },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ['ALL'] },
              },
            },
          ],
        },
      },
    },
  })
}

/** What the API server finds the webhooks by; the last to come, and the first to go: without the operator they would be in the way. */
export function webhooksOf(
  project: Place,
  { definitions, lease }: Loaded,
): { service: Manifest[]; registrations: Manifest[] } {
  const hooks = hooksOf(definitions)
  const registrations = registrationManifests(project, lease, hooks)
  return { service: hooks.length > 0 ? [serviceOf(project, lease)] : [], registrations }
}

/** In the order in which they can be applied. */
export function manifestsOf(project: Project, exported: Loaded): Manifest[] {
  const { service, registrations } = webhooksOf(project, exported)
  return [
    ...[namespaceOf(project), ...crdsOf(project, exported), ...accountOf(project, exported)],
    ...[...service, deploymentOf(project, exported), ...registrations],
  ]
}
