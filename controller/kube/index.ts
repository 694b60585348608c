/**
 * `shipmate/kube`: the API server from TypeScript. What client-go is to Go.
 */
export { ShipmateError } from '../../shared/errors.ts'
export { type Access, type AccessOptions, connect, connectThrough } from './access.ts'
export { Cache, type CacheOptions } from './cache.ts'
export {
  CachedClient,
  type CachedOptions,
  controllerReference,
  type LastWish,
  type Owned,
  type StatusOf,
  type Write,
} from './cached.ts'
export * from './client.ts'
export type { ConnectionOptions } from './connection.ts'
export { createDiscovery, type Discovery, type DiscoveryOptions, type ServerVersion } from './discovery.ts'
export { createElection, type Election, type ElectionOptions, type Lead, type Standing } from './election.ts'
export * from './errors.ts'
export {
  createEventRecorder,
  type EventRecorder,
  type EventRecorderOptions,
  type Happening,
  type Regarded,
} from './events.ts'
export { type ExecOptions, type ExecResult, type ExecStreamOptions, exec, execStream } from './exec.ts'
export { NotLeading } from './gate.ts'
export { byLabel, Informer, type InformerOptions } from './informer.ts'
export * from './kind.ts'
export * from './kinds.ts'
export type { Credentials, CredentialsSource, KubeConfigOptions } from './kubeconfig.ts'
export { type LogLinesOptions, type LogOptions, logLines, logs } from './logs.ts'
export {
  type ForwardedPort,
  type ForwardPortOptions,
  forwardPort,
  type PortForwardOptions,
  portForward,
} from './portforward.ts'
export type { Health } from './reflector.ts'
export type { ApiGroup, ApiVersion, AskedKind, AskedResource, ServedKind } from './restmapper.ts'
export type { RetryOptions } from './retry.ts'
export type { Change, Indexer, Listener } from './store.ts'
export type { Interceptor, Request, Response, Send, Target } from './transport.ts'
export type { Labels } from './url.ts'
export { compareVersions } from './versions.ts'
export type { WatchEvent } from './watch.ts'
