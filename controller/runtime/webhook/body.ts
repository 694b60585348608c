/**
 * The body of a request, read whole and bounded.
 *
 * Guarantees: no more than its limit is ever held of one, nor more than the budget of all that are under way; whoever sends more, or sends slowly, harms no other.
 */
import type { IncomingMessage } from 'node:http'

/** The caller's fault, with the status of HTTP that says so. */
export class Unreadable extends Error {
  readonly status: number

  constructor(message: string, status = 400) {
    super(message)
    this.status = status
  }
}

export interface Budget {
  /** Bytes that are held now. */
  held: number
  readonly most: number
}

/** @throws Unreadable where it is too large, cut off, or no JSON in UTF-8 */
export async function readJson(request: IncomingMessage, limit: number, budget: Budget): Promise<unknown> {
  const type = request.headers['content-type'] ?? ''
  const chunks: Buffer[] = []
  let [size, held]: [number, number] = [0, 0]
  let refused = /^application\/json\s*(;|$)/i.test(type) ? undefined : notJson
  const drop = (why: Unreadable) => {
    refused = why
    chunks.length = 0
    budget.held -= held
    held = 0
  }
  try {
    // To its end, even if nothing of it is kept: leaving would cut the connection before the answer.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      if (refused) continue
      size += chunk.length
      held += chunk.length
      budget.held += chunk.length
      chunks.push(chunk)
      if (size > limit) drop(new Unreadable(`the body is larger than ${limit} bytes`, 413))
      else if (budget.held > budget.most) drop(new Unreadable('too much is being sent at once: try again', 503))
    }
  } catch {
    refused = new Unreadable('the body was cut off')
  } finally {
    budget.held -= held
  }
  if (refused) throw refused
  return parsed(Buffer.concat(chunks))
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new Unreadable('the body is no JSON')
  }
}

const notJson = new Unreadable('the body has to be application/json', 415)
