/**
 * A real API server, asked without a client's help: the status and the body of each answer, whatever they are.
 */
import { authenticated } from '../../../controller/kube/auth.ts'
import { createConnection } from '../../../controller/kube/connection.ts'
import { credentialsFrom } from '../../../controller/kube/kubeconfig.ts'
import type { Request } from '../../../controller/kube/transport.ts'
import type { Status } from '../../../devcluster/api/problems.ts'
import type { Obj } from '../../../devcluster/api/types.ts'

export interface Answer {
  readonly status: number
  readonly object: Obj
  /** Of a refusal. */
  readonly problem: Status | undefined
}

export interface Real extends AsyncDisposable {
  ask(method: Request['method'], path: string, body?: unknown, contentType?: string): Promise<Answer>
}

export function askReal(kubeconfig: string): Real {
  const connection = createConnection()
  const send = authenticated(connection, credentialsFrom({ file: kubeconfig }))
  return {
    async ask(method, path, body, contentType = 'application/json') {
      const { status, text } = await send({
        method,
        path,
        headers: { 'content-type': contentType, accept: 'application/json' },
        body: body === undefined ? undefined : JSON.stringify(body),
        target: { verb: 'get', group: '', resource: '' },
      })
      const answer = JSON.parse(text)
      return { status, object: answer, problem: status < 400 ? undefined : answer }
    },
    [Symbol.asyncDispose]: () => connection.close(),
  }
}
