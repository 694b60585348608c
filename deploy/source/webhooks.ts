/**
 * Admission: what the API server asks the controller about. The controller writes its authority into both registrations, unless cert-manager does.
 */
import { registrationsOf } from '../../controller/runtime/index.ts'
import { shipmateHooks } from '../../controller/webhook/hooks.ts'
import { Expression, item, namespace, repeat, text, when } from './expression.ts'
import {
  controller,
  hasCertManager,
  hasWebhooks,
  labels,
  registration,
  watched,
  webhookSecret,
  webhookService,
} from './names.ts'

const certificate = 'shipmate-webhook'
const metadata = {
  name: registration,
  labels,
  annotations: when(hasCertManager, { 'cert-manager.io/inject-ca-from': text`${namespace}/${certificate}` }),
}
/** Stands for the controller's own user in what does not know of expressions. */
const self = '@self@'
const hooks = shipmateHooks({ client: undefined as never, settings: { version: '', image: '' }, user: self })
// What they are asked about stands with the hooks themselves.
const place = { service: { name: webhookService, namespace: namespace as never } }
/** Where a controller looks after some namespaces only, nobody is asked about the others. */
const namespaceSelector = when(watched, {
  matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: [repeat(watched, item)] }],
})
const registrations = registrationsOf(hooks, registration, place).map(({ object }) => {
  const { webhooks, ...rest } = withSelf(object) as { webhooks: object[] }
  return { ...rest, metadata, webhooks: webhooks.map(webhook => ({ ...webhook, namespaceSelector })) }
})

function withSelf(value: unknown): unknown {
  if (typeof value === 'string') {
    const [before = '', after] = value.split(self)
    return after === undefined ? value : text`${before}system:serviceaccount:${namespace}:${controller}${after}`
  }
  if (Array.isArray(value)) return value.map(withSelf)
  if (typeof value !== 'object' || value === null || value instanceof Expression) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withSelf(one)]))
}

const managed = [
  {
    apiVersion: 'cert-manager.io/v1',
    kind: 'Issuer',
    metadata: { name: certificate, namespace, labels },
    spec: { selfSigned: {} },
  },
  {
    apiVersion: 'cert-manager.io/v1',
    kind: 'Certificate',
    metadata: { name: certificate, namespace, labels },
    spec: {
      secretName: webhookSecret,
      dnsNames: [text`${webhookService}.${namespace}.svc`, text`${webhookService}.${namespace}.svc.cluster.local`],
      issuerRef: { name: certificate },
      privateKey: { algorithm: 'ECDSA', rotationPolicy: 'Always' },
    },
  },
]

export const webhooks: unknown[] = [
  ...registrations.map(object => when(hasWebhooks, object)),
  ...managed.map(object => when(hasCertManager, object)),
]
