/**
 * The body of a request in Kubernetes' protobuf form, as the JSON form of the same object.
 */
import { badRequest } from '../../problems.ts'
import type { Obj } from '../../types.ts'
import { messageOf, readMessage, readSent } from './message.ts'

/** @param wanted the kind that is asked for; throws an ApiError for what is none */
export function fromProtobuf(body: Uint8Array, wanted: string): Partial<Obj> {
  let sent: ReturnType<typeof readSent>
  try {
    sent = readSent(body)
  } catch (error) {
    throw badRequest(`the object provided is unrecognized (must be of type ${wanted}): ${(error as Error).message}`)
  }
  const { apiVersion, kind, raw } = sent
  const version = apiVersion.split('/').at(-1)
  const refuse = (why: string) =>
    badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${wanted}: ${why}`)
  const name = messageOf(apiVersion, kind)
  if (!name) {
    throw refuse(
      `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} in scheme "pkg/runtime/scheme.go:111"`,
    )
  }
  try {
    return { kind, apiVersion, ...readMessage(raw, name) }
  } catch (error) {
    throw refuse((error as Error).message)
  }
}
