/**
 * `shipmate/testing`: a cluster for tests, in the test's own process, and everything that can go wrong between an operator and a cluster.
 */
export type { User } from '../api/types.ts'
export type { ControllerName } from '../controllers/start.ts'
export { type Named, startCluster, type TestCluster, type TestClusterOptions, type WaitOptions } from './cluster.ts'
export { type EveryFaultOptions, type EveryFaultReport, everyFault } from './everyfault.ts'
export type { Compare } from './faults/judge.ts'
export type { FaultName } from './faults/plays.ts'
export type { Scenario } from './faults/stage.ts'
export type { Manifest, Manifests } from './manifests.ts'
export type { Operator, Operators, PolicyRule } from './operator.ts'
