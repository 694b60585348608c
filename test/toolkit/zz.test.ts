import { Deployment } from '../../controller/kube/kinds.ts'
import { defineKind } from '../../controller/kube/kind.ts'
import { mutable } from '../../controller/toolkit/resource.ts'
import { yamlTemplate } from '../../controller/toolkit/template.ts'
interface W { spec: { size: number } }
const Widget = defineKind<W>({ group: 'x', version: 'v1', kind: 'Widget' })
export const m = mutable(Deployment, Widget, {
  mutateWithInitialData: yamlTemplate({ text: 'a: 1' }, cr => ({ name: cr.metadata.name, size: cr.spec.size })),
})
export const bad = mutable(Deployment, Widget, {
  // @ts-expect-error no such field
  mutateWithInitialData: yamlTemplate({ text: 'a: 1' }, cr => ({ name: cr.metadata.name, size: cr.spec.sizes })),
})
