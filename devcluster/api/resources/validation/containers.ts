/**
 * The containers of a pod: names, images, variables, ports, mounts, resources, probes.
 */
import { compareQuantity } from '../../../quantity.ts'
import type { FieldError } from '../../problems.ts'
import { configKey, dns1123Label, dns1123Subdomain, portName } from '../../schema/names.ts'
import { list } from '../strategies/lists.ts'
import { validateFieldRef, validateResourceRef } from './downward.ts'
import { duplicate, forbidden, invalid, notFound, oneOf, port, required, ruled } from './mistakes.ts'
import { validateHandler, validateProbe } from './probes.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a client sent.
type Any = any

interface Around {
  /** The volumes of the pod. */
  readonly volumes: ReadonlySet<string>
  /** Names that are taken, of containers of any kind. */
  readonly names: Set<string>
}

export function validateContainers(containers: Any, path: string, around: Around): FieldError[] {
  return list(containers).flatMap((container, at) => validateContainer(container, `${path}[${at}]`, around))
}

function validateContainer(container: Any, path: string, { volumes, names }: Around): FieldError[] {
  const { name, image } = container
  const errors = name ? ruled(`${path}.name`, name, dns1123Label) : [required(`${path}.name`)]
  if (name && names.has(name)) errors.push(duplicate(`${path}.name`, name))
  names.add(name)
  if (!image) errors.push(required(`${path}.image`))
  else if (image.trim() !== image)
    errors.push(invalid(`${path}.image`, image, 'must not have leading or trailing whitespace'))
  errors.push(...validateLifecycle(container, path))
  errors.push(...oneOf(`${path}.terminationMessagePolicy`, container.terminationMessagePolicy, messagePolicies))
  errors.push(...oneOf(`${path}.imagePullPolicy`, container.imagePullPolicy, pullPolicies))
  errors.push(...validatePorts(list(container.ports), `${path}.ports`))
  errors.push(...list(container.env).flatMap((one, at) => validateVariable(one, `${path}.env[${at}]`)))
  errors.push(...list(container.envFrom).flatMap((one, at) => validateSource(one, `${path}.envFrom`, at)))
  errors.push(...validateMounts(list(container.volumeMounts), `${path}.volumeMounts`, volumes))
  errors.push(...validateResources(container.resources, `${path}.resources`))
  errors.push(...validateSecurity(container.securityContext, `${path}.securityContext`))
  return errors
}

const pullPolicies = ['Always', 'IfNotPresent', 'Never']
const messagePolicies = ['FallbackToLogsOnError', 'File']

/** An init container ends before others begin, unless it is one that starts anew whenever it ends. */
function validateLifecycle(container: Any, path: string): FieldError[] {
  const { lifecycle = {} } = container
  const mayProbe = !path.includes('.initContainers[') && !path.startsWith('initContainers[')
  if (!mayProbe && container.restartPolicy !== 'Always') {
    const refused = ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'].filter(name => container[name])
    return refused.map(name =>
      forbidden(`${path}.${name}`, 'may not be set for init containers without restartPolicy=Always'),
    )
  }
  return [
    ...(lifecycle.postStart ? validateHandler(lifecycle.postStart, `${path}.lifecycle.postStart`) : []),
    ...(lifecycle.preStop ? validateHandler(lifecycle.preStop, `${path}.lifecycle.preStop`) : []),
    ...validateProbe(container.livenessProbe, `${path}.livenessProbe`, true),
    ...validateProbe(container.readinessProbe, `${path}.readinessProbe`, false),
    ...validateProbe(container.startupProbe, `${path}.startupProbe`, true),
  ]
}

function validatePorts(ports: Any[], path: string): FieldError[] {
  const names = new Set<string>()
  return ports.flatMap(({ name, containerPort, hostPort, protocol }, at) => {
    const where = `${path}[${at}]`
    const errors = name ? ruled(`${where}.name`, name, portName) : []
    if (name && errors.length === 0) {
      if (names.has(name)) errors.push(duplicate(`${where}.name`, name))
      names.add(name)
    }
    if (!containerPort) errors.push(required(`${where}.containerPort`))
    else errors.push(...port(`${where}.containerPort`, containerPort))
    if (hostPort) errors.push(...port(`${where}.hostPort`, hostPort))
    errors.push(...oneOf(`${where}.protocol`, protocol, protocols))
    return errors
  })
}

export const protocols = ['SCTP', 'TCP', 'UDP']

function validateVariable({ name = '', value = '', valueFrom }: Any, path: string): FieldError[] {
  const errors: FieldError[] = []
  if (name === '') errors.push(required(`${path}.name`))
  else if (!/^[ -<>-~]+$/.test(name)) {
    const detail =
      "a valid environment variable name must consist only of printable ASCII characters other than '=' (e.g. 'my-name',  or 'MY.NAME',  or 'MyName', regex used for validation is '^[ -<>-~]+$')"
    errors.push(invalid(`${path}.name`, name, detail))
  }
  if (!valueFrom) return errors
  const where = `${path}.valueFrom`
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = valueFrom
  if (fieldRef) errors.push(...validateFieldRef(fieldRef, `${where}.fieldRef`, 'variable'))
  if (resourceFieldRef) errors.push(...validateResourceRef(resourceFieldRef, `${where}.resourceFieldRef`, 'variable'))
  if (configMapKeyRef) errors.push(...validateKeyRef(configMapKeyRef, `${where}.configMapKeyRef`))
  if (secretKeyRef) errors.push(...validateKeyRef(secretKeyRef, `${where}.secretKeyRef`))
  const given = [fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef].filter(Boolean).length
  const refused = (detail: string) => errors.push(invalid(where, '', detail))
  if (given === 0)
    refused('must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`')
  else if (value !== '') refused('may not be specified when `value` is not empty')
  else if (given > 1) refused('may not have more than one field specified at a time')
  return errors
}

const validateKeyRef = ({ name = '', key = '' }: Any, path: string): FieldError[] => [
  ...ruled(`${path}.name`, name, dns1123Subdomain),
  ...(key === '' ? [required(`${path}.key`)] : ruled(`${path}.key`, key, configKey)),
]

function validateSource({ configMapRef, secretRef }: Any, path: string, at: number): FieldError[] {
  const named = ({ name = '' }: Any, field: string) =>
    name === '' ? [required(field)] : ruled(field, name, dns1123Subdomain)
  const errors: FieldError[] = []
  if (configMapRef) errors.push(...named(configMapRef, `${path}[${at}].configMapRef.name`))
  if (secretRef) errors.push(...named(secretRef, `${path}[${at}].secretRef.name`))
  if (!configMapRef && !secretRef) errors.push(invalid(path, '', 'must specify one of: `configMapRef` or `secretRef`'))
  if (configMapRef && secretRef) errors.push(invalid(path, '', 'may not have more than one field specified at a time'))
  return errors
}

function validateMounts(mounts: Any[], path: string, volumes: ReadonlySet<string>): FieldError[] {
  const paths = new Set<string>()
  return mounts.flatMap(({ name = '', mountPath = '', subPath, subPathExpr }, at) => {
    const where = `${path}[${at}]`
    const errors: FieldError[] = []
    if (name === '') errors.push(required(`${where}.name`))
    if (!volumes.has(name)) errors.push(notFound(`${where}.name`, name))
    if (mountPath === '') errors.push(required(`${where}.mountPath`))
    if (paths.has(mountPath)) errors.push(invalid(`${where}.mountPath`, mountPath, 'must be unique'))
    paths.add(mountPath)
    for (const [field, value] of [
      ['subPath', subPath],
      ['subPathExpr', subPathExpr],
    ]) {
      if (value?.startsWith('/')) errors.push(invalid(`${where}.${field}`, value, 'must be a relative path'))
      if (value?.split('/').includes('..')) errors.push(invalid(`${where}.${field}`, value, "must not contain '..'"))
    }
    if (subPath && subPathExpr) {
      const detail = 'subPathExpr and subPath are mutually exclusive'
      errors.push(invalid(`${where}.subPathExpr`, subPathExpr, detail))
    }
    return errors
  })
}

const standard = ['cpu', 'memory', 'ephemeral-storage']

function validateResources(resources: Any, path: string): FieldError[] {
  const errors: FieldError[] = []
  const { limits = {}, requests = {} } = resources ?? {}
  for (const [kind, amounts] of Object.entries({ limits, requests })) {
    for (const [name, quantity] of Object.entries(amounts as Record<string, string>)) {
      const field = `${path}.${kind}[${name}]`
      if (!name.includes('/') && !standard.includes(name) && !name.startsWith('hugepages-')) {
        errors.push(invalid(field, name, 'must be a standard resource type or fully qualified'))
        errors.push(invalid(field, name, 'must be a standard resource for containers'))
      }
      if (compareQuantity(quantity, '0') < 0)
        errors.push(invalid(field, quantity, 'must be greater than or equal to 0'))
      if (kind === 'limits' || limits[name] === undefined) continue
      const order = compareQuantity(quantity, limits[name])
      const mayBeLess = !name.includes('/') && !name.startsWith('hugepages-')
      const about = `${name} limit of ${limits[name]}`
      if (order !== 0 && !mayBeLess) errors.push(invalid(`${path}.requests`, quantity, `must be equal to ${about}`))
      else if (order > 0) errors.push(invalid(`${path}.requests`, quantity, `must be less than or equal to ${about}`))
    }
  }
  return errors
}

/** Of a container, or of the pod around it. */
export function validateSecurity(context: Any, path: string): FieldError[] {
  return ['runAsUser', 'runAsGroup', 'fsGroup'].flatMap(name => {
    const id = context?.[name]
    const isFit = id === undefined || (id >= 0 && id <= 2 ** 31 - 1)
    return isFit ? [] : [invalid(`${path}.${name}`, id, 'must be between 0 and 2147483647, inclusive')]
  })
}
