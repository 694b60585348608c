/**
 * `serviceaccounts/token`: a token that this server signs and knows again.
 */
import { timeOf } from '../../../../shared/clock.ts'
import { badRequest, conflict, invalid, notFound } from '../../problems.ts'
import type { ApiResponse, Asked, Obj } from '../../types.ts'
import { formOf, respond } from '../answer.ts'
import type { Context } from '../context.ts'
import { parseBody } from '../decode.ts'
import { stored } from '../read.ts'

const shortest = 600
const longest = 2 ** 32
const hour = 3600

export async function requestToken(context: Context, asked: Asked): Promise<ApiResponse> {
  const form = formOf(asked.request.headers.accept, false)
  const request = (await parseBody(asked.request, 'TokenRequest')).value as Obj
  const account = stored(context, asked)
  const { name, namespace = '', uid } = account.metadata
  if (request.metadata?.name && request.metadata.name !== name) {
    throw badRequest(`the name of the object (${request.metadata.name}) does not match the name on the URL (${name})`)
  }
  const { boundObjectRef } = request.spec ?? {}
  // Clients send null for what they leave open.
  const expirationSeconds: number = request.spec?.expirationSeconds ?? hour
  const audiences: string[] = request.spec?.audiences ?? []
  const wrong =
    expirationSeconds < shortest
      ? 'may not specify a duration less than 10 minutes'
      : expirationSeconds > longest
        ? 'may not specify a duration larger than 2^32 seconds'
        : undefined
  if (wrong) {
    throw invalid({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, '', [
      { mistake: 'FieldValueInvalid', field: 'spec.expirationSeconds', value: expirationSeconds, detail: wrong },
    ])
  }
  const bound = boundObjectRef ? boundTo(context, namespace, boundObjectRef) : undefined
  const now = context.clock.now()
  const given = audiences.length > 0 ? audiences : [...context.tokens.audiences]
  const { token, expires } = context.tokens.issue(
    { namespace, name, uid, audiences: given, seconds: expirationSeconds, ...(bound ? { bound } : {}) },
    now,
  )
  const answer = {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name, namespace, uid, creationTimestamp: timeOf(now) },
    spec: { audiences: given, expirationSeconds, boundObjectRef: boundObjectRef ?? null },
    status: { token, expirationTimestamp: timeOf(expires) },
  }
  return respond(201, JSON.stringify(answer), form)
}

const boundKinds: Readonly<Record<string, string>> = { Pod: 'pods', Secret: 'secrets', Node: 'nodes' }

function boundTo({ store }: Context, namespace: string, reference: { kind?: string; name?: string; uid?: string }) {
  const { kind = '', name = '', uid } = reference
  const resource = boundKinds[kind]
  if (!resource) throw badRequest(`cannot bind token for serviceaccount to type ${JSON.stringify(reference)}`)
  const object = store.get(`/${resource}`, kind === 'Node' ? undefined : namespace, name)
  if (!object) throw notFound({ group: '', resource }, name)
  if (uid && uid !== object.metadata.uid) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`
    throw conflict({ group: '', resource }, name, why)
  }
  return { kind: kind.toLowerCase(), name, uid: object.metadata.uid }
}
