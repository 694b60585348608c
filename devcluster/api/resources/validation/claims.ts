/**
 * What a server refuses of a claim, and of a StatefulSet's templates of claims.
 */
import { compareQuantity } from '../../../quantity.ts'
import type { FieldError } from '../../problems.ts'
import { dns1123Subdomain } from '../../schema/names.ts'
import type { Obj } from '../../types.ts'
import { same } from '../strategies/status.ts'
import { forbidden, immutable, invalid, notSupported, oneOf, required, ruled } from './mistakes.ts'
import { validateSelector } from './selectors.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a client sent.
type Any = any

const modes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

export function validateClaimSpec(spec: Any, path: string): FieldError[] {
  const { accessModes = [], storageClassName, volumeMode } = spec ?? {}
  const errors: FieldError[] = []
  const field = `${path}.accessModes`
  if (!accessModes?.length) errors.push(required(field, 'at least 1 access mode is required'))
  for (const mode of accessModes ?? []) if (!modes.includes(mode)) errors.push(notSupported(field, mode, modes))
  if (accessModes?.length > 1 && accessModes.includes('ReadWriteOncePod'))
    errors.push(forbidden(field, 'may not use ReadWriteOncePod with other access modes'))
  errors.push(...validateSelector(spec?.selector, `${path}.selector`))
  const size = spec?.resources?.requests?.storage
  if (size === undefined) errors.push(required(`${path}.resources[storage]`))
  else if (compareQuantity(size, '0') <= 0)
    errors.push(invalid(`${path}.resources[storage]`, size, 'must be greater than zero'))
  if (storageClassName) errors.push(...ruled(`${path}.storageClassName`, storageClassName, dns1123Subdomain))
  return [...errors, ...oneOf(`${path}.volumeMode`, volumeMode, ['Block', 'Filesystem'])]
}

export function validateClaim(object: Obj, old: Obj | undefined): FieldError[] {
  const errors = validateClaimSpec(object.spec, 'spec')
  if (!old) return errors
  const isBound = object.status?.phase === 'Bound'
  if (!same(frozen(object, old, isBound), frozen(old, old, isBound))) {
    errors.push(
      forbidden(
        'spec',
        'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
      ),
    )
  }
  const size = object.spec?.resources?.requests?.storage ?? '0'
  const isLess = compareQuantity(size, old.spec?.resources?.requests?.storage ?? '0') < 0
  if (isLess && compareQuantity(size, old.status?.capacity?.storage ?? '0') <= 0)
    errors.push(forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity'))
  if (!same(object.spec?.volumeMode, old.spec?.volumeMode))
    errors.push(immutable('volumeMode', object.spec?.volumeMode))
  return errors
}

/** What may not differ: a bound claim may grow, one without a volume may get one, and one without a class a class. */
function frozen({ spec = {} }: Obj, old: Obj, isBound: boolean): Any {
  const { resources, volumeName, storageClassName, volumeAttributesClassName, ...rest } = spec
  const { requests } = resources ?? {}
  const { storage: _, ...others } = requests ?? {}
  return {
    ...rest,
    resources: isBound && requests ? { ...resources, requests: others } : resources,
    ...(old.spec?.volumeName ? { volumeName } : {}),
    ...(old.spec?.storageClassName === undefined ? {} : { storageClassName }),
    ...(isBound ? {} : { volumeAttributesClassName }),
  }
}
