/**
 * What a server refuses of a pod's spec, in a pod or in a template.
 */
import type { FieldError } from '../../problems.ts'
import { dns1123Label, dns1123Subdomain } from '../../schema/names.ts'
import { list } from '../strategies/lists.ts'
import { validateContainers, validateSecurity } from './containers.ts'
import { invalid, notSupported, oneOf, required, ruled } from './mistakes.ts'
import { validatePlacement } from './placement.ts'
import { validateAnnotations, validateLabels } from './selectors.ts'
import { validateVolumes } from './volumes.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a client sent.
type Any = any

const dnsPolicies = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']

/** @param claims of a StatefulSet: the names of its templates of claims, which are volumes that are not in the spec */
export function validatePodSpec(spec: Any, path: string, claims?: readonly string[]): FieldError[] {
  const errors: FieldError[] = []
  // Those of claims come first, and take the place of one with their name.
  const own = list(spec?.volumes).filter(({ name }) => !claims?.includes(name))
  const volumes = new Set<string>()
  const all = [...(claims ?? []).map(name => ({ name, persistentVolumeClaim: { claimName: name } })), ...own]
  errors.push(...validateVolumes(all, `${path}.volumes`, volumes))
  const around = { volumes, names: new Set<string>() }
  if (list(spec?.containers).length === 0) errors.push(required(`${path}.containers`))
  errors.push(...validateContainers(spec?.containers, `${path}.containers`, around))
  errors.push(...validateContainers(spec?.initContainers, `${path}.initContainers`, around))
  errors.push(...oneOf(`${path}.restartPolicy`, spec?.restartPolicy, ['Always', 'OnFailure', 'Never']))
  errors.push(...oneOf(`${path}.dnsPolicy`, spec?.dnsPolicy, dnsPolicies))
  errors.push(...validateSecurity(spec?.securityContext, `${path}.securityContext`))
  errors.push(...validatePlacement(spec ?? {}, path))
  for (const [name, rule] of names) {
    // A StatefulSet's pods get a name of their own.
    if (spec?.[name] && !(claims && name === 'hostname')) errors.push(...ruled(`${path}.${name}`, spec[name], rule))
  }
  const deadline = spec?.activeDeadlineSeconds
  if (deadline !== undefined && (deadline < 1 || deadline > 2 ** 31 - 1)) {
    const detail = 'must be between 1 and 2147483647, inclusive'
    errors.push(invalid(`${path}.activeDeadlineSeconds`, deadline, detail))
  }
  return errors
}

const names = [
  ['hostname', dns1123Label],
  ['subdomain', dns1123Label],
  ['serviceAccountName', dns1123Subdomain],
  ['nodeName', dns1123Subdomain],
  ['priorityClassName', dns1123Subdomain],
  ['runtimeClassName', dns1123Subdomain],
] as const

/** A template of pods. Its labels and annotations are told without `metadata`, as a real server does. */
export function validateTemplate(template: Any, path: string, claims?: readonly string[]): FieldError[] {
  return [
    ...validateLabels(template?.metadata?.labels, `${path}.labels`),
    ...validateAnnotations(template?.metadata?.annotations, `${path}.annotations`),
    ...validatePodSpec(template?.spec, `${path}.spec`, claims),
  ]
}

/** One whose pods are replaced whenever they end. */
export function validateLastingTemplate(
  template: Any,
  path: string,
  kind: string,
  claims?: readonly string[],
): FieldError[] {
  const errors = validateTemplate(template, path, claims)
  const { restartPolicy = '', activeDeadlineSeconds } = template?.spec ?? {}
  if (restartPolicy !== 'Always') errors.push(notSupported(`${path}.spec.restartPolicy`, restartPolicy, ['Always']))
  if (activeDeadlineSeconds !== undefined) {
    const detail = `activeDeadlineSeconds in ${kind} is not Supported`
    errors.push({ mistake: 'FieldValueForbidden', field: `${path}.spec.activeDeadlineSeconds`, detail })
  }
  return errors
}
