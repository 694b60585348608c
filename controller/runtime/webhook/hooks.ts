/**
 * Webhooks as they are declared: a name, a path, what they are asked about, and a function.
 *
 * Guarantee: what the API server would refuse in a registration is refused when it is declared, with the field and what is accepted.
 */
import { ShipmateError } from '../../../shared/errors.ts'
import { shown } from '../../../shared/nearest.ts'
import type { Live } from '../../kube/kind.ts'
import type { Admission, AdmissionRequest } from './admission.ts'
import type { ConversionRequest } from './conversion.ts'

/** Which requests a webhook is asked about, as the API server has it. */
export interface HookRule {
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT' | '*')[]
  readonly apiGroups: readonly string[]
  readonly apiVersions: readonly string[]
  /** `pods`; `pods/status` for a subresource. */
  readonly resources: readonly string[]
  /** Default `*`. */
  readonly scope?: 'Namespaced' | 'Cluster' | '*' | undefined
}

interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined
  readonly matchExpressions?:
    | readonly { readonly key: string; readonly operator: string; readonly values?: readonly string[] | undefined }[]
    | undefined
}

interface AdmissionOptions<T extends object> {
  /** A domain name of three parts or more, of your own: `inject.example.com`. */
  readonly name: string
  /** Where it is served: `/inject`. */
  readonly path: string
  readonly rules: readonly HookRule[]
  /** What becomes of a request about which it cannot be asked. Default Fail. */
  readonly failurePolicy?: 'Fail' | 'Ignore' | undefined
  /** Equivalent: objects of other versions are converted first. Default Equivalent. */
  readonly matchPolicy?: 'Exact' | 'Equivalent' | undefined
  /** Default: objects with any labels. */
  readonly objectSelector?: LabelSelector | undefined
  /** Default: objects in any namespace. */
  readonly namespaceSelector?: LabelSelector | undefined
  /** It is asked only if all of these, in CEL, hold. Default: none. */
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[] | undefined
  /** How long the API server waits, 1 to 30. Default 10. */
  readonly timeoutSeconds?: number | undefined
  /** NoneOnDryRun where it has effects elsewhere, and none when `dryRun` is said. Default None. */
  readonly sideEffects?: 'None' | 'NoneOnDryRun' | undefined
  readonly handle: (request: AdmissionRequest<T>) => Promise<Admission<T> | undefined>
}

export interface MutatingOptions<T extends object = object> extends AdmissionOptions<T> {
  /** IfNeeded: it is asked again where another one has changed the object after it. Default Never. */
  readonly reinvocationPolicy?: 'Never' | 'IfNeeded' | undefined
}

export interface ValidatingOptions<T extends object = object> extends AdmissionOptions<T> {}

export interface ConvertingOptions {
  /** The CRD's: `memcacheds.cache.example.com`. */
  readonly crd: string
  /** Where it is served. */
  readonly path: string
  /** The same object in the version `to`. One that throws is told with the object's name and why. */
  readonly convert: (request: ConversionRequest) => Promise<Pick<Live, 'apiVersion' | 'kind' | 'metadata'>>
}

export type Hook =
  | ({ readonly is: 'mutating' } & MutatingOptions)
  | ({ readonly is: 'validating' } & ValidatingOptions)
  | ({ readonly is: 'converting' } & ConvertingOptions)

/** One that may change what is written. */
export function mutating<T extends object = object>(options: MutatingOptions<T>): Hook {
  checkAdmission(options)
  return { is: 'mutating', ...(options as unknown as MutatingOptions) }
}

/** One that may refuse what is written. */
export function validating<T extends object = object>(options: ValidatingOptions<T>): Hook {
  checkAdmission(options)
  return { is: 'validating', ...(options as unknown as ValidatingOptions) }
}

/** One that knows the versions of a CRD. */
export function converting(options: ConvertingOptions): Hook {
  checkPath(`the conversion of ${options.crd}`, options.path)
  return { is: 'converting', ...options }
}

/** What a webhook is called in metrics and logs. */
export const nameOf = (hook: Hook): string => (hook.is === 'converting' ? `convert.${hook.crd}` : hook.name)

/** @throws ShipmateError with code Misuse where two cannot be told apart */
export function refuseTwins(hooks: readonly Hook[]): void {
  for (const [index, hook] of hooks.entries()) {
    const before = hooks.slice(0, index)
    if (before.some(({ path }) => path === hook.path))
      refuse(nameOf(hook), `path ${shown(hook.path)} is another's, too`)
    if (before.some(other => other.is === hook.is && nameOf(other) === nameOf(hook)))
      refuse(nameOf(hook), 'there are two of that name')
  }
}

const domain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?){2,}$/

// biome-ignore lint/suspicious/noExplicitAny: whatever its objects are.
function checkAdmission({ name, path, rules, timeoutSeconds = 10 }: AdmissionOptions<any>): void {
  if (!domain.test(name))
    refuse(name, 'its name has to be a domain name of three parts or more, in lower case, such as inject.example.com')
  checkPath(name, path)
  if (rules.length === 0) refuse(name, 'rules is empty: it would never be asked')
  if (!Number.isInteger(timeoutSeconds) || timeoutSeconds < 1 || timeoutSeconds > 30)
    refuse(name, `timeoutSeconds is ${shown(timeoutSeconds)}, but has to be a whole number from 1 to 30`)
}

function checkPath(name: string, path: string): void {
  if (!/^(\/[\w.-]+)+$/.test(path))
    refuse(name, `path is ${shown(path)}, but has to be a path such as /inject, of letters, digits, ".", "_" and "-"`)
}

function refuse(name: string, why: string): never {
  throw new ShipmateError('Misuse', `webhook ${name}: ${why}`, 'never')
}
