/**
 * A node's object in the API server, as a kubelet keeps it.
 */
import { cpus, release, totalmem } from 'node:os'
import type { Client } from '../../controller/kube/client.ts'
import { AlreadyExists } from '../../controller/kube/errors.ts'
import { Node } from '../../controller/kube/kinds.ts'
import { timeOf } from '../../shared/clock.ts'

export interface Machine {
  readonly name: string
  readonly ip: string
  readonly labels: Readonly<Record<string, string>>
  bootId: string
}

/** What its containers may use in all. */
export const allocatable: Readonly<Record<string, string>> = {
  cpu: String(cpus().length || 1),
  memory: `${Math.floor(totalmem() / 1024)}Ki`,
  pods: '250',
  'ephemeral-storage': '100Gi',
}

const arch: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' }
const architecture = arch[process.arch] ?? process.arch

export async function register(client: Client, machine: Machine, version: string, now: number): Promise<void> {
  const { name, ip, bootId } = machine
  const labels = {
    'kubernetes.io/hostname': name,
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': architecture,
    ...machine.labels,
  }
  try {
    await client.create(Node, { metadata: { name, labels }, spec: {} })
  } catch (error) {
    if (!(error instanceof AlreadyExists)) throw error
    await client.patch(Node, { name }, { merge: { metadata: { labels } } })
  }
  const nodeInfo = {
    bootID: bootId,
    architecture,
    operatingSystem: 'linux',
    containerRuntimeVersion: 'shipmate://1',
    kernelVersion: release(),
    kubeProxyVersion: version,
    kubeletVersion: version,
    machineID: name,
    systemUUID: name,
    osImage: process.platform,
  }
  const addresses = [
    { type: 'InternalIP', address: ip },
    { type: 'Hostname', address: name },
  ]
  const merge = { status: { nodeInfo, addresses, capacity: allocatable, allocatable } }
  await client.patch(Node, { name }, { merge }, { subresource: 'status' })
  await setReady(client, name, true, now)
}

/** Whether a node is ready; nobody else says so, as nobody waits for heartbeats here. */
export async function setReady(client: Client, name: string, isReady: boolean, now: number): Promise<void> {
  const at = timeOf(now)
  const condition = (type: string, status: string, reason: string, message: string) => ({
    ...{ type, status, reason, message, lastHeartbeatTime: at, lastTransitionTime: at },
  })
  const unknown = 'Kubelet stopped posting node status.'
  const conditions = isReady
    ? [
        condition('MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'),
        condition('DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'),
        condition('PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'),
        condition('Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'),
      ]
    : [condition('Ready', 'Unknown', 'NodeStatusUnknown', unknown)]
  await client.patch(Node, { name }, { strategic: { status: { conditions } } }, { subresource: 'status' })
  // The taints of the node lifecycle controller: others stay.
  const { spec } = await client.get(Node, { name })
  const ours = ['node.kubernetes.io/unreachable', 'node.kubernetes.io/not-ready']
  const others = (spec?.taints ?? []).filter(({ key }) => !ours.includes(key))
  const taints = isReady ? others : [...others, { key: ours[0], effect: 'NoSchedule' }]
  if (taints.length !== (spec?.taints ?? []).length) await client.patch(Node, { name }, { merge: { spec: { taints } } })
}
