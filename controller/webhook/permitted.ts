/**
 * Whether a writer may do by hand what Shipmate would do on the writer's behalf: the API server is asked, for each right.
 */
import type { Client } from '../kube/client.ts'
import type { Discovery } from '../kube/discovery.ts'
import { SubjectAccessReview } from '../kube/kinds.ts'
import type { User } from '../runtime/index.ts'
import type { Right } from './review/rights.ts'

export interface Asking {
  readonly client: Client
  readonly discovery: Discovery
  readonly user: User
  readonly namespace: string
  readonly signal: AbortSignal
}

/** A sentence for each that the user lacks. */
export async function lacking(rights: readonly Right[], asking: Asking): Promise<string[]> {
  const answers = await Promise.all(rights.map(right => lacks(right, asking)))
  return answers.filter(answer => answer !== undefined)
}

async function lacks(
  right: Right,
  { client, discovery, user, namespace, signal }: Asking,
): Promise<string | undefined> {
  const { verb, group, name } = right
  const resource = right.resource ?? (await resourceOf(right, discovery, signal))
  if (resource === undefined)
    return `${right.for}: the API server serves no kind ${right.kind} in ${group || 'v1'}/${right.version}`
  const { status } = await client.create(
    SubjectAccessReview,
    {
      metadata: {},
      spec: {
        user: user.name,
        groups: [...user.groups],
        ...(user.uid !== undefined && { uid: user.uid }),
        extra: Object.fromEntries(Object.entries(user.extra).map(([key, values]) => [key, [...values]])),
        resourceAttributes: { verb, group, resource, namespace, ...(name !== undefined && { name }) },
      },
    } as never,
    { signal },
  )
  if (status?.allowed) return undefined
  const what = `${resource}${group ? `.${group}` : ''}${name === undefined ? '' : ` "${name}"`}`
  return `${right.for}: ${user.name} may not ${verb} ${what} in namespace ${namespace}, and so cannot have it done`
}

async function resourceOf({ group, version = '', kind = '' }: Right, discovery: Discovery, signal: AbortSignal) {
  const apiVersion = group ? `${group}/${version}` : version
  return discovery.kindOfObject({ apiVersion, kind }, { signal }).then(
    served => served.plural,
    () => undefined,
  )
}
