/**
 * A reader of the sidecar's events that comes back after every death of the agent.
 */
import type { Message, Run } from '../../../shared/protocol/schemas.ts'
import type { Sidecar } from '../../fixtures/sidecar.ts'

export interface Following {
  /** What `onRun` has thrown first. */
  readonly failure: Error | undefined
  stop(): void
}

export function follow(sidecar: Sidecar, onRun: (run: Run) => void): Following {
  const stopped = new AbortController()
  let socket: WebSocket | undefined
  let failure: Error | undefined

  function hear({ data }: { data: unknown }): void {
    const message: Message = JSON.parse(String(data))
    const runs = message.type === 'reset' ? message.runs : message.type === 'run' ? [message.run] : []
    try {
      for (const run of runs) onRun(run)
    } catch (error) {
      failure ??= error as Error
    }
  }

  async function again(): Promise<void> {
    while (!stopped.signal.aborted) {
      await sidecar.listening(stopped.signal)
      const next = new WebSocket(`ws://${sidecar.address}/v1/events`)
      socket = next
      next.addEventListener('message', hear)
      await new Promise<void>(resolve => {
        next.addEventListener('close', () => resolve())
        next.addEventListener('error', () => resolve())
      })
    }
  }
  again().catch(error => {
    if (!stopped.signal.aborted) failure ??= error
  })

  return {
    get failure() {
      return failure
    },
    stop() {
      stopped.abort(new Error('stopped'))
      socket?.close()
    },
  }
}
