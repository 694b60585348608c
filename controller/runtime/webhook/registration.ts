/**
 * What has to stand in the cluster so that the API server asks: MutatingWebhookConfiguration, ValidatingWebhookConfiguration, and the conversion of a CRD.
 * Pure. The bundle of authorities is not part of it: who keeps the certificates writes that (keeper.ts).
 *
 * Guarantee: the same hooks at the same place give the same objects.
 */

import type { Names } from '../../../shared/certificate.ts'
import { apiVersionOf, type Kind, type Live } from '../../kube/kind.ts'
import {
  CustomResourceDefinition,
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
} from '../../kube/kinds.ts'
import type { Hook } from './hooks.ts'

/** Where the API server finds the webhooks. */
export type WebhookPlace =
  | {
      readonly service: {
        readonly name: string
        readonly namespace: string /** Default 443. */
        readonly port?: number
      }
    }
  /** Without a path: `https://127.0.0.1:9443`. For a server outside of the cluster. */
  | { readonly url: string }

type ClientConfig =
  | {
      readonly service: {
        readonly name: string
        readonly namespace: string
        readonly path: string
        readonly port: number
      }
    }
  | { readonly url: string }

function clientConfigOf(place: WebhookPlace, path: string): ClientConfig {
  if ('url' in place) return { url: `${place.url.replace(/\/$/, '')}${path}` }
  const { name, namespace, port = 443 } = place.service
  return { service: { name, namespace, path, port } }
}

/** What the API server calls the place: what the certificate has to be for. */
export function namesOf(place: WebhookPlace): Names {
  if ('service' in place) {
    const { name, namespace } = place.service
    return { dns: [`${name}.${namespace}.svc`, `${name}.${namespace}.svc.cluster.local`, `${name}.${namespace}`] }
  }
  const { hostname } = new URL(place.url)
  const address = /^[\d.]+$|^\[/.test(hostname)
  return address ? { addresses: [hostname.replace(/^\[|\]$/g, '')] } : { dns: [hostname] }
}

/** An object to be, and the kind as which it is applied. */
export interface Registration {
  readonly kind: Kind
  readonly object: { readonly metadata: { readonly name: string } } & Readonly<Record<string, unknown>>
}

/** Those that there are of the two configurations; each with all its webhooks. @param name of both */
export function registrationsOf(hooks: readonly Hook[], name: string, place: WebhookPlace): Registration[] {
  const sorts = [
    ['mutating', MutatingWebhookConfiguration],
    ['validating', ValidatingWebhookConfiguration],
  ] as const
  return sorts.flatMap(([is, kind]) => {
    const webhooks = hooks.flatMap(hook => (hook.is === is ? [webhookOf(hook, place)] : []))
    const object = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { name }, webhooks }
    return webhooks.length > 0 ? { kind, object } : []
  })
}

function webhookOf(hook: Exclude<Hook, { is: 'converting' }>, place: WebhookPlace): object {
  const { name, path, rules, objectSelector, namespaceSelector, matchConditions } = hook
  return {
    name,
    admissionReviewVersions: ['v1'],
    clientConfig: clientConfigOf(place, path),
    rules: rules.map(({ scope = '*', ...rule }) => ({ ...rule, scope })),
    failurePolicy: hook.failurePolicy ?? 'Fail',
    matchPolicy: hook.matchPolicy ?? 'Equivalent',
    sideEffects: hook.sideEffects ?? 'None',
    timeoutSeconds: hook.timeoutSeconds ?? 10,
    ...(objectSelector && { objectSelector }),
    ...(namespaceSelector && { namespaceSelector }),
    ...(matchConditions && { matchConditions }),
    ...(hook.is === 'mutating' && { reinvocationPolicy: hook.reinvocationPolicy ?? 'Never' }),
  }
}

/** What stands in `spec.conversion` of a CRD. */
export function conversionOf(place: WebhookPlace, path: string, caBundle?: string) {
  const clientConfig = { ...clientConfigOf(place, path), ...(caBundle !== undefined && { caBundle }) }
  return { strategy: 'Webhook' as const, webhook: { clientConfig, conversionReviewVersions: ['v1'] } }
}

export type CrdConversion = ReturnType<typeof conversionOf>

/** An object on the cluster that has places for a bundle of ours. */
export interface Registered {
  readonly kind: Kind
  readonly name: string
  /** Where the client configurations that are ours stand in it, as JSON pointers, and what bundle each has. */
  places(live: Live): readonly { readonly at: string; readonly bundle: string | undefined }[]
}

interface HasBundle {
  readonly caBundle?: string | undefined
}

/** Every object that the API server finds these webhooks by. */
export function registeredOf(hooks: readonly Hook[], name: string): Registered[] {
  const sorts = [
    ['mutating', MutatingWebhookConfiguration],
    ['validating', ValidatingWebhookConfiguration],
  ] as const
  const configurations = sorts.flatMap(([is, kind]) => {
    const own = new Set(hooks.flatMap(hook => (hook.is === is ? [hook.name] : [])))
    const places = (live: Live) =>
      ((live as { webhooks?: readonly { name: string; clientConfig?: HasBundle }[] }).webhooks ?? []).flatMap(
        ({ name: webhook, clientConfig }, index) =>
          own.has(webhook) ? [{ at: `/webhooks/${index}/clientConfig`, bundle: clientConfig?.caBundle }] : [],
      )
    return own.size > 0 ? [{ kind, name, places }] : []
  })
  const definitions = hooks.flatMap(hook => {
    if (hook.is !== 'converting') return []
    const places = (live: Live) => {
      const { conversion } = (live as { spec?: { conversion?: { webhook?: { clientConfig?: HasBundle } } } }).spec ?? {}
      const { clientConfig } = conversion?.webhook ?? {}
      return clientConfig ? [{ at: '/spec/conversion/webhook/clientConfig', bundle: clientConfig.caBundle }] : []
    }
    return [{ kind: CustomResourceDefinition, name: hook.crd, places }]
  })
  return [...configurations, ...definitions]
}
