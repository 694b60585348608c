// What the times are compared with: one plain status PATCH of an object of the same kind and size, under a group that no controller
// looks after, from the request to the event on the same sort of watch.

import { StatefulApp } from '../../controller/app/kinds.ts'
import type { Api } from '../api.ts'
import { namespace } from './objects.ts'
import { type Observed, observe } from './observer.ts'
import { monotonic } from './time.ts'

const group = 'floor.example.com'
const path = `/apis/${group}/v1alpha1/namespaces/${namespace}/statefulapps`
/** So many take turns, so that no two writes meet on one of them. */
const objects = 50

export interface Floor {
  /** Milliseconds of one PATCH. */
  patch(): Promise<number>
  stop(): void
}

/** The kind: the StatefulApp's own schema, under another group. */
export function floorCrd(): object {
  const crd = StatefulApp.crd() as { metadata: object; spec: { group: string; names: object } }
  const names = { ...crd.spec.names, shortNames: [], categories: [] }
  return { ...crd, metadata: { name: `statefulapps.${group}` }, spec: { ...crd.spec, group, names } }
}

/** @param like an app as it stands on the server */
export async function createFloor(api: Api, like: Observed): Promise<Floor> {
  const { spec } = like as unknown as { spec: object }
  const nameOf = (i: number) => `floor-${i % objects}`
  for (let i = 0; i < objects; i++) {
    const metadata = { name: nameOf(i), namespace }
    await api.request('POST', path, { apiVersion: `${group}/v1alpha1`, kind: 'StatefulApp', metadata, spec })
    await api.request('PATCH', `${path}/${nameOf(i)}/status`, { status: like.status })
  }
  const observer = await observe(api, path)
  let count = 0
  return {
    async patch() {
      const name = nameOf(++count)
      const state = `State${count}`
      const since = new Date().toISOString()
      const began = monotonic()
      const seen = observer.until(name, ({ status }) => status?.state === state, 60_000, 'a plain status PATCH')
      await api.request('PATCH', `${path}/${name}/status`, { status: { state, since } })
      return (await seen) - began
    },
    stop: () => observer.stop(),
  }
}
