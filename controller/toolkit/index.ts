/**
 * `shipmate`: the toolkit for operators. What OKT is to Go, finished.
 */
export { messageOf } from '../../shared/errors.ts'
export type { LifecycleSpec } from '../../shared/lifecycle/model.ts'
export type { Problem } from '../runtime/index.ts'
export type { Conversion, Converted, Default, Problems, Validate, ValidationRequest } from './admission.ts'
export {
  type AppResource,
  type AppResourceOptions,
  appResource,
  Lifecycle,
  type LifecycleResourceOptions,
  type LifecycleShape,
  lifecycleResource,
  type Wish,
} from './app.ts'
export { StatefulApp, type StatefulAppShape } from './appstate.ts'
export type { AllOptions } from './care.ts'
export {
  type AppAnswer,
  type AppCallOptions,
  type AppClient,
  CommandFailed,
  type ExecAppOptions,
  execAppClient,
  type HttpAppOptions,
  httpAppClient,
  type Ping,
} from './clients/app.ts'
export {
  type Auth,
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
  type HttpRequest,
  type TlsOptions,
} from './clients/http.ts'
export { HttpError } from './clients/http-error.ts'
export { authFrom, tlsFrom } from './clients/secret.ts'
export type { Condition, Wanted } from './conditions.ts'
export type { BasicContext, Context, StatusDraft } from './context.ts'
export { checkCrd } from './crd/check.ts'
export type { CrdFinding } from './crd/compare.ts'
export type { AppLifecycle, AppView } from './crd/wish.ts'
export {
  type CustomResource,
  type CustomResourceDefinitionOf,
  defineCustomResource,
  type ResourceOf,
  type SpecInputOf,
} from './definition.ts'
export { type Engine, GiveUp } from './engine.ts'
export { freeStyle } from './freestyle.ts'
export { type HashablePart, hashAnnotation, hashOfParts, makerAnnotation } from './hash.ts'
export { type AddOptions, addTo, managerFor, type RunOptions, run } from './operator.ts'
export { type PolicyRule, type Rbac, type RbacOptions, rbacManifests, rbacOf, rbacYaml } from './rbac.ts'
export { type Readiness, readinessOf } from './readiness.ts'
export {
  type AdvancedOptions,
  advancedReconciler,
  type BasicOptions,
  basicReconciler,
  type Reconciler,
  type ReconcilerOptions,
  type Watched,
  watched,
} from './reconciler.ts'
export type { Entry, Registry } from './registry.ts'
export {
  type AnyResource,
  type Editable,
  type InitialData,
  type MutableOptions,
  mutable,
  type Release,
  type ResourceObject,
  type ResourceOptions,
  resource,
} from './resource.ts'
export { type Consolidated, type Operation, type OperationCode, operations, type Results } from './results.ts'
export { type Hook, type StepHooks, stepper } from './stepper.ts'
export { type TemplateSource, yamlTemplate } from './template.ts'
export type { ThrottleOptions } from './throttle.ts'
export {
  type ContainerExit,
  countRunning,
  exitsOf,
  jobExits,
  listPods,
  nextPartition,
  type PodCounts,
  podsOf,
  withStringData,
} from './workloads.ts'
