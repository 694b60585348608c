/**
 * AdmissionReview of admission.k8s.io/v1: what the API server asks before it writes, and what it is answered. Pure.
 *
 * Guarantees: what is no such review is refused with what is wrong with it; an answer has the request's uid; one that is allowed and one that is refused can
 * both have warnings.
 */
import * as z from 'zod/mini'
import type { Live, LiveMeta } from '../../kube/kind.ts'
import { Unreadable } from './body.ts'
import { patchBetween } from './json-patch.ts'
import { causeOf, type Problem, sentenceOf } from './problem.ts'

export interface AdmissionRequest<T extends object = object> {
  readonly uid: string
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'
  /** Of the object, in the version that the webhook asks for. */
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string }
  /** As in URLs. */
  readonly resource: { readonly group: string; readonly version: string; readonly resource: string }
  /** `status`, `scale`; absent for the object itself. */
  readonly subresource?: string | undefined
  /** Empty where the server is still to make it up, from `generateName`. */
  readonly name: string
  /** Absent for kinds in no namespace. */
  readonly namespace?: string | undefined
  /** Who asks. */
  readonly user: User
  /** As it would be written, a copy of the webhook's own. Absent in a DELETE. Its metadata may lack what the server has still to fill in. */
  readonly object?: Live<T> | undefined
  /** As it is; absent in a CREATE. */
  readonly old?: Live<T> | undefined
  /** Nothing will be written: whoever has effects elsewhere leaves them. */
  readonly dryRun: boolean
  /** Of the call, as the API server has them: `fieldManager` and such. */
  readonly options?: Readonly<Record<string, unknown>> | undefined
  /** Aborted when the answer would come too late, or nobody waits for it any more. */
  readonly signal: AbortSignal
}

export interface User {
  readonly name: string
  readonly uid?: string | undefined
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

/** What a webhook says; nothing: it may be as it is. */
export interface Admission<T extends object = object> {
  /** Of a mutating webhook: as it shall be. What differs becomes the patch. Default: as it is. */
  readonly object?: Partial<Live<T>> | undefined
  /** Why it is refused. Default: it is not. */
  readonly problems?: readonly Problem[] | undefined
  /** What sort of refusal it is: of the object (422), or of who asks (403). Default Invalid. */
  readonly reason?: 'Invalid' | 'Forbidden' | undefined
  /** What kubectl prints although it is allowed, or besides; a short line each. */
  readonly warnings?: readonly string[] | undefined
}

const named = { group: z._default(z.string(), ''), version: z._default(z.string(), '') }
const object = z.optional(z.nullable(z.record(z.string(), z.unknown())))
const review = z.object({
  apiVersion: z.literal('admission.k8s.io/v1'),
  kind: z.literal('AdmissionReview'),
  request: z.object({
    uid: z.string().check(z.minLength(1)),
    kind: z.object({ ...named, kind: z.string() }),
    resource: z.object({ ...named, resource: z.string() }),
    subResource: z.optional(z.string()),
    name: z._default(z.string(), ''),
    namespace: z.optional(z.string()),
    operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
    userInfo: z._default(
      z.object({
        username: z._default(z.string(), ''),
        uid: z.optional(z.string()),
        groups: z._default(z.nullable(z.array(z.string())), []),
        extra: z._default(z.nullable(z.record(z.string(), z.array(z.string()))), {}),
      }),
      { username: '', groups: [], extra: {} },
    ),
    object,
    oldObject: object,
    dryRun: z._default(z.nullable(z.boolean()), false),
    options: object,
  }),
})

/** @throws Unreadable with the first thing that is wrong */
export function admissionRequest(body: unknown, signal: AbortSignal): AdmissionRequest {
  const { data, error } = review.safeParse(body)
  if (!data) throw new Unreadable(`this is no AdmissionReview of admission.k8s.io/v1: ${firstOf(error)}`)
  const { uid, operation, kind, resource, subResource, name, namespace, userInfo, ...rest } = data.request
  return {
    ...{ uid, operation, kind, resource, name },
    subresource: subResource || undefined,
    namespace: namespace || undefined,
    user: {
      name: userInfo.username,
      uid: userInfo.uid || undefined,
      groups: userInfo.groups ?? [],
      extra: userInfo.extra ?? {},
    },
    object: live(rest.object),
    old: live(rest.oldObject),
    dryRun: rest.dryRun ?? false,
    options: rest.options ?? undefined,
    signal,
  }
}

export function firstOf(error: z.core.$ZodError): string {
  const [issue] = error.issues
  return issue ? `${issue.path.join('.') || 'the body'}: ${issue.message}` : 'nothing of it can be read'
}

/** Whatever the server has not filled in yet: metadata is there. */
function live(object: Record<string, unknown> | null | undefined): Live | undefined {
  if (!object) return undefined
  const { metadata } = object as { metadata?: LiveMeta | null }
  return (metadata ? object : { ...object, metadata: {} }) as unknown as Live
}

export type AdmissionOutcome = 'allowed' | 'patched' | 'denied'

/** @param isMutating whether an object in the admission counts */
export function admissionAnswer(
  request: AdmissionRequest,
  before: unknown,
  admission: Admission | undefined,
  isMutating: boolean,
): { outcome: AdmissionOutcome; body: object } {
  const { object, problems = [], warnings = [] } = admission ?? {}
  const told = warnings.length > 0 ? { warnings: warnings.map(text => text.replaceAll(/\s*\n\s*/g, ' ')) } : {}
  const said = (outcome: AdmissionOutcome, response: object) => ({
    outcome,
    body: {
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: request.uid, ...response, ...told },
    },
  })
  if (problems.length > 0) return said('denied', { allowed: false, status: refusal(request, problems, admission) })
  const patch = isMutating && object !== undefined ? patchBetween(before, object) : []
  if (patch.length === 0) return said('allowed', { allowed: true })
  const encoded = Buffer.from(JSON.stringify(patch)).toString('base64')
  return said('patched', { allowed: true, patchType: 'JSONPatch', patch: encoded })
}

function refusal(request: AdmissionRequest, problems: readonly Problem[], admission: Admission | undefined): object {
  const { kind, name, object, old } = request
  const subject = object ?? old
  const message = problems.map(problem => sentenceOf(problem, subject)).join('; ')
  if (admission?.reason === 'Forbidden') return { status: 'Failure', code: 403, reason: 'Forbidden', message }
  const causes = problems.map(problem => causeOf(problem, subject))
  const details = { name, group: kind.group, kind: kind.kind, causes }
  return { status: 'Failure', code: 422, reason: 'Invalid', message, details }
}
