/**
 * The volumes of a pod. A volume with a mistake is not there for those who mount it.
 */
import type { FieldError } from '../../problems.ts'
import { dns1123Label } from '../../schema/names.ts'
import { list } from '../strategies/lists.ts'
import { validateFieldRef, validateResourceRef } from './downward.ts'
import { duplicate, forbidden, invalid, oneOf, required, ruled } from './mistakes.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a client sent.
type Any = any

/** In the order in which they are looked at. */
export const volumeSources = [
  'emptyDir',
  'hostPath',
  'gitRepo',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'secret',
  'nfs',
  'iscsi',
  'glusterfs',
  'flocker',
  'persistentVolumeClaim',
  'rbd',
  'cinder',
  'cephfs',
  'quobyte',
  'downwardAPI',
  'fc',
  'azureFile',
  'configMap',
  'flexVolume',
  'vsphereVolume',
  'azureDisk',
  'storageos',
  'photonPersistentDisk',
  'portworxVolume',
  'scaleIO',
  'projected',
  'csi',
  'ephemeral',
  'image',
]

/** The names of those without a mistake are added to `names`. */
export function validateVolumes(volumes: Any, path: string, names: Set<string>): FieldError[] {
  return list(volumes).flatMap((volume, at) => {
    const where = `${path}[${at}]`
    const errors = [...validateSource(volume, where), ...validateName(volume.name, `${where}.name`)]
    if (names.has(volume.name)) errors.push(duplicate(`${where}.name`, volume.name))
    if (errors.length === 0) names.add(volume.name)
    return errors
  })
}

const validateName = (name: Any, field: string) => (name ? ruled(field, name, dns1123Label) : [required(field)])

function validateSource(volume: Any, path: string): FieldError[] {
  const [first = '', ...more] = volumeSources.filter(source => volume[source])
  return [
    ...(checks[first]?.(volume[first], `${path}.${first}`) ?? []),
    ...more.map(source =>
      // A real server misspells this one, too.
      forbidden(
        `${path}.${source === 'downwardAPI' ? 'downwarAPI' : source}`,
        'may not specify more than 1 volume type',
      ),
    ),
  ]
}

const hostPathTypes = [
  '',
  'DirectoryOrCreate',
  'Directory',
  'FileOrCreate',
  'File',
  'Socket',
  'CharDevice',
  'BlockDevice',
]

const checks: Readonly<Record<string, (source: Any, path: string) => FieldError[]>> = {
  emptyDir: ({ sizeLimit }, path) =>
    String(sizeLimit ?? '').startsWith('-')
      ? [forbidden(`${path}.sizeLimit`, 'SizeLimit field must be a valid resource quantity')]
      : [],
  hostPath: (source, path) => {
    if (!source.path) return [required(`${path}.path`)]
    return [
      ...(source.path.split('/').includes('..') ? [invalid(`${path}.path`, source.path, "must not contain '..'")] : []),
      ...oneOf(`${path}.type`, source.type, hostPathTypes),
    ]
  },
  secret: (source, path) => [
    ...(source.secretName ? [] : [required(`${path}.secretName`)]),
    ...validateKeys(source, path),
  ],
  configMap: (source, path) => [...(source.name ? [] : [required(`${path}.name`)]), ...validateKeys(source, path)],
  persistentVolumeClaim: ({ claimName }, path) => (claimName ? [] : [required(`${path}.claimName`)]),
  downwardAPI: (source, path) => [
    ...mode(`${path}.defaultMode`, source.defaultMode),
    ...list(source.items).flatMap(item => validateFile(item, path)),
  ],
  projected: (source, path) => [
    ...mode(`${path}.defaultMode`, source.defaultMode),
    ...validateProjections(list(source.sources), path),
  ],
}

const mode = (field: string, value: number | undefined): FieldError[] =>
  value !== undefined && (value < 0 || value > 0o777)
    ? [invalid(field, value, 'must be a number between 0 and 0777 (octal), both inclusive')]
    : []

const validateKeys = (source: Any, path: string): FieldError[] => [
  ...mode(`${path}.defaultMode`, source.defaultMode),
  ...list(source.items).flatMap((item, at) => validateKey(item, `${path}.items[${at}]`)),
]

function validateKey(item: Any, path: string): FieldError[] {
  return [
    ...(item.key ? [] : [required(`${path}.key`)]),
    ...validatePath(item.path, `${path}.path`),
    ...mode(`${path}.mode`, item.mode),
  ]
}

/** Of a file in a volume: below its root. */
function validatePath(path: string | undefined, field: string): FieldError[] {
  if (!path) return [required(field)]
  const errors: FieldError[] = []
  if (path.startsWith('/')) errors.push(invalid(field, path, 'must be a relative path'))
  if (path.split('/').includes('..')) errors.push(invalid(field, path, "must not contain '..'"))
  else if (path.startsWith('..')) errors.push(invalid(field, path, "must not start with '..'"))
  return errors
}

function validateFile(file: Any, path: string): FieldError[] {
  const errors = validatePath(file.path, `${path}.path`)
  if (file.fieldRef) {
    errors.push(...validateFieldRef(file.fieldRef, `${path}.fieldRef`, 'volume'))
    if (file.resourceFieldRef) {
      const detail = 'fieldRef and resourceFieldRef can not be specified simultaneously'
      errors.push(invalid(path, 'resource', detail))
    }
  } else if (file.resourceFieldRef) {
    errors.push(...validateResourceRef(file.resourceFieldRef, `${path}.resourceFieldRef`, 'volume'))
  } else errors.push(required(path, 'one of fieldRef and resourceFieldRef is required'))
  return [...errors, ...mode(`${path}.mode`, file.mode)]
}

function validateProjections(sources: Any[], path: string): FieldError[] {
  const taken = new Set<string>()
  const claim = (at: string | undefined, value: unknown): FieldError[] => {
    if (!at) return []
    if (taken.has(at)) return [invalid(path, value, 'conflicting duplicate paths')]
    taken.add(at)
    return []
  }
  return sources.flatMap((source, at) => {
    const where = `${path}.sources[${at}]`
    const errors: FieldError[] = []
    for (const kind of ['secret', 'configMap'] as const) {
      if (!source[kind]) continue
      if (!source[kind].name) errors.push(required(`${where}.${kind}.name`))
      for (const [index, item] of list(source[kind].items).entries()) {
        errors.push(...validateKey(item, `${where}.${kind}.items[${index}]`), ...claim(item.path, source[kind].name))
      }
    }
    for (const item of list(source.downwardAPI?.items)) {
      errors.push(...validateFile(item, `${where}.downwardAPI`), ...claim(item.path, item.path))
    }
    if (source.serviceAccountToken) {
      const { path: file, expirationSeconds } = source.serviceAccountToken
      errors.push(...claim(file, file), ...expiration(`${where}.serviceAccountToken`, expirationSeconds))
      if (!file) errors.push(required(`${path}.path`))
    }
    const given = ['secret', 'configMap', 'downwardAPI', 'serviceAccountToken'].filter(kind => source[kind])
    if (given.length > 1) errors.push(forbidden(where, 'may not specify more than 1 volume type per source'))
    return errors
  })
}

function expiration(path: string, seconds: number): FieldError[] {
  const field = `${path}.expirationSeconds`
  if (seconds < 600) return [invalid(field, seconds, 'may not specify a duration less than 10 minutes')]
  if (seconds > 2 ** 32) return [invalid(field, seconds, 'may not specify a duration larger than 2^32 seconds')]
  return []
}
