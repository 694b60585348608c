/**
 * `pods/ephemeralcontainers`: kept for pods that run elsewhere; refused for those of nodes that start no such containers, where a caller would wait
 * forever for one. `kubectl debug --copy-to` works.
 */
import { ApiError } from '../../problems.ts'
import type { ApiResponse, Asked } from '../../types.ts'
import { patch, update } from '../change.ts'
import type { Context } from '../context.ts'
import { stored } from '../read.ts'

export async function ephemeral(context: Context, asked: Asked): Promise<ApiResponse> {
  const node = stored(context, asked).spec?.nodeName
  // Without details, which is how kubectl knows it from a pod that is not there.
  if (node && context.runtimes.has(node))
    throw new ApiError(
      404,
      'NotFound',
      `node ${node} runs no ephemeral containers; a copy of the pod can be changed`,
      {},
    )
  return asked.verb === 'patch' ? patch(context, asked) : update(context, asked)
}
