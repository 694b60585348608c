/**
 * What else a writer must be permitted, because the controller will do it on the writer's behalf. Pure.
 *
 * Guarantees: through an app nobody gets done what they could not have done themselves; who changes nothing of it needs no right anew.
 */
import { isSame } from '../../app/decide/app.ts'
import type { App, Op } from '../../app/view.ts'

export interface Right {
  readonly verb: string
  /** By resource, or by kind where only that is known. */
  readonly group: string
  readonly resource?: string
  readonly kind?: string
  readonly version?: string
  readonly name?: string
  /** What it is needed for: the field that was written. */
  readonly for: string
}

export function rightsForApp({ spec }: App, old?: App): Right[] {
  const isNew = (field: 'template' | 'workload' | 'onEnd') =>
    spec[field] !== undefined && !isSame(spec[field], old?.spec[field])
  const rights: Right[] = []
  if (isNew('template')) {
    // An older template is put back as it is: to patch is not more than to create.
    rights.push({ verb: 'create', group: 'apps', resource: 'statefulsets', for: 'spec.template' })
    rights.push({ verb: 'create', group: '', resource: 'services', for: 'spec.template' })
    if (spec.template?.configMaps)
      rights.push({ verb: 'create', group: '', resource: 'configmaps', for: 'spec.template.configMaps' })
  }
  if (spec.workload) {
    const { apiVersion, kind, name } = spec.workload
    const [version = '', group = ''] = apiVersion.split('/').toReversed()
    if (isNew('workload')) rights.push({ verb: 'patch', group, version, kind, name, for: 'spec.workload' })
    if (isNew('onEnd') && (spec.onEnd === 'Delete' || spec.onEnd === 'DeleteWithVolumes'))
      rights.push({ verb: 'delete', group, version, kind, name, for: 'spec.onEnd' })
  }
  if (isNew('onEnd') && spec.onEnd === 'DeleteWithVolumes')
    rights.push({ verb: 'delete', group: '', resource: 'persistentvolumeclaims', for: 'spec.onEnd' })
  return rights
}

/** To decide what nobody saw is a right of its own. */
export function rightsForOperation({ metadata, spec }: Op, old?: Op): Right[] {
  const said = spec.settle ?? []
  if (said.length === 0 || isSame(said, old?.spec.settle)) return []
  return [{ verb: 'settle', group: 'shipmate.dev', resource: 'operations', name: metadata.name, for: 'spec.settle' }]
}
