/**
 * All that is on the cluster for an operator, from its code and its setting. Pure.
 */

import { type Applied, apiVersionOf, type Kind } from '../controller/kube/kind.ts'
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
import { type CustomResource, rbacManifests, rbacOf } from '../controller/toolkit/index.ts'
import type { Exported } from './module.ts'
import type { Project } from './project.ts'

/** An object to be, and the kind as which it is applied. */
export interface Manifest {
  readonly kind: Kind
  readonly object: Applied & { readonly metadata: { readonly name: string; readonly namespace?: string | undefined } }
}

type Place = Pick<Project, 'name' | 'namespace'>

/** By which an object is known to be an operator's own. */
export function ownLabels({ name }: Place): Record<string, string> {
  return { 'app.kubernetes.io/name': name, 'app.kubernetes.io/managed-by': 'shipmate' }
}

export function namespaceOf({ namespace }: Place): Manifest {
  return manifest(Namespace, { metadata: { name: namespace } })
}

export function crdsOf(definitions: readonly CustomResource[]): Manifest[] {
  return definitions.map(definition => manifest(CustomResourceDefinition, definition.crd()))
}

/** The account, its roles and their bindings. */
export function accountOf(project: Place, { operators, lease }: Exported & { lease: string }): Manifest[] {
  const kinds: Kind[] = [ServiceAccount, ClusterRole, ClusterRoleBinding, Role, RoleBinding]
  const objects = rbacManifests(rbacOf(operators, { lease }), project) as Manifest['object'][]
  return objects.flatMap(object => {
    const kind = kinds.find(one => one.kind === object.kind)
    return kind ? manifest(kind, { ...object, metadata: { ...object.metadata, labels: ownLabels(project) } }) : []
  })
}

export function deploymentOf(project: Project): Manifest {
  const { name, namespace, image, replicas } = project
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
              ports: [{ name: 'http', containerPort: 8081 }],
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

/** In the order in which they can be applied. */
export function manifestsOf(project: Project, exported: Exported & { lease: string }): Manifest[] {
  return [namespaceOf(project), ...crdsOf(exported.definitions), ...accountOf(project, exported), deploymentOf(project)]
}

function manifest(kind: Kind, object: object): Manifest {
  return { kind, object: { apiVersion: apiVersionOf(kind), kind: kind.kind, ...object } as Manifest['object'] }
}
