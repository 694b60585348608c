/**
 * `shipmate`: the toolkit for operators. What OKT is to Go, finished.
 */
export {
  type AppResource,
  type AppResourceOptions,
  appResource,
  StatefulApp,
  type StatefulAppShape,
  type Wish,
} from './app.ts'
export type { AllOptions } from './care.ts'
export type { Condition, Wanted } from './conditions.ts'
export type { BasicContext, Context, StatusDraft } from './context.ts'
export { type Engine, GiveUp } from './engine.ts'
export { freeStyle } from './freestyle.ts'
export { type HashablePart, hashAnnotation, hashOfParts } from './hash.ts'
export { addTo, managerFor, type RunOptions, run } from './operator.ts'
export { type Readiness, readinessOf } from './readiness.ts'
export {
  type AdvancedOptions,
  advancedReconciler,
  type BasicOptions,
  basicReconciler,
  type Reconciler,
  type ReconcilerOptions,
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
export type { ThrottleOptions } from './throttle.ts'
