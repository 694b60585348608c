/**
 * How an object is to be deleted: from the body, or without one from the query.
 */
import { badRequest, type FieldError, invalid } from '../problems.ts'
import type { ApiRequest } from '../types.ts'
import { bodyText, isProtobuf, parseBody } from './decode.ts'
import { dryRunMistakes } from './write-options.ts'

export interface DeleteOptions {
  readonly gracePeriodSeconds: number | undefined
  readonly propagation: 'Background' | 'Foreground' | 'Orphan' | undefined
  readonly preconditions: { readonly uid?: string; readonly resourceVersion?: string }
  readonly dryRun: boolean
}

interface Given {
  gracePeriodSeconds?: number
  propagationPolicy?: string
  orphanDependents?: boolean
  preconditions?: { uid?: string; resourceVersion?: string }
  dryRun?: string[]
}

export async function deleteOptions(request: ApiRequest): Promise<DeleteOptions> {
  return optionsOf(request.body.byteLength > 0 ? await fromBody(request) : fromQuery(request.query))
}

export function optionsOf(given: Given): DeleteOptions {
  const errors: FieldError[] = [...dryRunMistakes(given.dryRun ?? [])]
  const { propagationPolicy: policy, orphanDependents: orphan } = given
  const field = 'propagationPolicy'
  if (policy !== undefined && orphan !== undefined) {
    const detail = 'orphanDependents and deletionPropagation cannot be both set'
    errors.push({ mistake: 'FieldValueInvalid', field, value: policy, detail })
  } else if (policy !== undefined && !['Foreground', 'Background', 'Orphan'].includes(policy)) {
    const detail = 'supported values: "Foreground", "Background", "Orphan", "nil"'
    errors.push({ mistake: 'FieldValueNotSupported', field, value: policy, detail })
  }
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', errors)
  const old = orphan === undefined ? undefined : orphan ? 'Orphan' : 'Background'
  return {
    gracePeriodSeconds: given.gracePeriodSeconds,
    propagation: (policy as DeleteOptions['propagation']) ?? old,
    preconditions: given.preconditions ?? {},
    dryRun: (given.dryRun ?? []).some(one => one === 'All'),
  }
}

async function fromBody(request: ApiRequest): Promise<Given> {
  if (isProtobuf(request)) return (await parseBody(request, 'DeleteOptions')).value as Given
  try {
    return (JSON.parse(bodyText(request)) ?? {}) as Given
  } catch (error) {
    throw badRequest(`couldn't get version/kind; json parse error: ${(error as Error).message}`)
  }
}

function fromQuery(query: URLSearchParams): Given {
  const grace = query.get('gracePeriodSeconds')
  if (grace !== null && !/^-?\d+$/.test(grace)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(grace)}: invalid syntax`)
  }
  const policy = query.get('propagationPolicy')
  const orphan = query.get('orphanDependents')
  return {
    ...(grace === null ? {} : { gracePeriodSeconds: Number(grace) }),
    ...(policy ? { propagationPolicy: policy } : {}),
    ...(orphan === null ? {} : { orphanDependents: orphan !== 'false' && orphan !== '0' }),
    dryRun: query.getAll('dryRun'),
  }
}
