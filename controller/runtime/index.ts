/**
 * `shipmate/runtime`: controllers, and what a process of them needs. What controller-runtime is to Go.
 */
export { createLog, type Log, type Logger, type LogOptions, levels } from '../../shared/log.ts'
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
export { createManager, Manager, type ManagerOptions, type Task } from './manager.ts'
export { type Result, RetryAfter, TerminalError } from './outcome.ts'
export type { Predicate } from './predicates.ts'
export * as predicates from './predicates.ts'
export { type Addition, priorities } from './queue.ts'
