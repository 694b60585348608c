/**
 * `shipmate/runtime`: controllers, and what a process of them needs. What controller-runtime is to Go.
 */
export { createLog, type Log, type Logger, type LogOptions, levels } from '../../shared/log.ts'
export { callerRules } from './callers.ts'
export {
  type Context,
  Controller,
  type ControllerOptions,
  type Gone,
  type Reconcile,
  type Trigger,
  type WatchedOptions,
} from './controller.ts'
export type { Address, Checks, Serving } from './health.ts'
export type { HotLoopOptions } from './hotloop.ts'
export { createManager, Manager, type ManagerOptions, type MetricsOptions, type Task } from './manager.ts'
export { type Result, RetryAfter, TerminalError } from './outcome.ts'
export type { Predicate } from './predicates.ts'
export * as predicates from './predicates.ts'
export { type Addition, priorities } from './queue.ts'
export type { Admission, AdmissionRequest, User } from './webhook/admission.ts'
export type { CertificateLifetimes } from './webhook/certificate.ts'
export type { ConversionRequest } from './webhook/conversion.ts'
export {
  type ConvertingOptions,
  converting,
  type Hook,
  type HookRule,
  type MutatingOptions,
  mutating,
  type ValidatingOptions,
  validating,
} from './webhook/hooks.ts'
export type { Problem } from './webhook/problem.ts'
export {
  type CrdConversion,
  conversionOf,
  type Registration,
  registrationsOf,
  type WebhookPlace,
} from './webhook/registration.ts'
export { type WebhookRights, webhookRights } from './webhook/rights.ts'
export { addWebhooks, secretNameOf, serviceNameOf, type WebhookOptions, type Webhooks } from './webhook/webhooks.ts'
