/**
 * Kills the agent of a pod's sidecar, as an accident would: SIGKILL, in the middle of what it does.
 */
import { readFileSync } from 'node:fs'
import { processesWith, signal } from '../../devcluster/node/identity.ts'
import type { Nodes } from '../../devcluster/node/nodes.ts'
import { hasSupervisor } from './software.ts'

/** Answers what was killed, in words. */
export function killAgent(nodes: Nodes, podUid: string, sidecar: string): string {
  const container = nodes.life(podUid)?.slots.find(({ spec }) => spec.name === sidecar)?.container
  if (!container) throw new Error(`container ${sidecar} does not run`)
  const agents = hasSupervisor ? processesWith(`SHIPMATE_CONTAINER=${container.id}`).filter(isAgent) : []
  if (agents.length === 0) {
    container.signal('SIGKILL')
    return 'the whole container'
  }
  for (const pid of agents) signal(pid, 'SIGKILL')
  return `the agent, process ${agents.join(', ')}`
}

/** Not its supervisor, whose arguments name it too. */
function isAgent(pid: number): boolean {
  const [program = '', ...words] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  return /(^|\/)node$/.test(program) && words.some(word => word.endsWith('/agent.cjs'))
}
