/**
 * Whether the cluster has the CRD that an operator was written for: asked once, when it starts.
 *
 * Guarantee: an account that may not read CRDs is a finding, not a failure; that the server cannot be reached is an error, as with any call.
 */
import type { CallOptions, Client } from '../../kube/client.ts'
import { Forbidden } from '../../kube/errors.ts'
import { CustomResourceDefinition } from '../../kube/kinds.ts'
import { type CompareOptions, type CrdFinding, compareCrd } from './compare.ts'
import type { Crd } from './manifest.ts'

export interface CheckOptions extends CompareOptions, CallOptions {}

/** What differs on the cluster in a way that matters; empty where nothing does. */
export async function checkCrd(
  client: Pick<Client, 'find'>,
  kind: { readonly version: string; crd(): Crd },
  { command, ...call }: CheckOptions = {},
): Promise<CrdFinding[]> {
  const ours = kind.crd()
  const { name } = ours.metadata
  try {
    const theirs = await client.find(CustomResourceDefinition, { name }, call)
    return compareCrd(ours, kind.version, theirs, { command })
  } catch (error) {
    if (!(error instanceof Forbidden)) throw error
    const rule = '{apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get]}'
    return [
      {
        is: 'Unreadable',
        message: `whether the CRD ${name} is the one that this operator was written for is not known: its account may not read CRDs`,
        remedy: `add the rule ${rule} to its ClusterRole`,
        blocks: false,
      },
    ]
  }
}
