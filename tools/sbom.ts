/**
 * What is in a bundle, as a CycloneDX document: the packages whose code the bundler took, with version, licence and hash as the lock file has them. Nothing that is
 * installed and left out is named.
 *
 * Guarantee: the same bundle and lock file give the same bytes: no time, no random number.
 */
import { Enums, Models, Serialize, Spec } from '@cyclonedx/cyclonedx-library'
import type { Metafile } from 'esbuild'
import manifest from '../package.json' with { type: 'json' }
import lock from '../package-lock.json' with { type: 'json' }

interface Locked {
  readonly version?: string
  readonly integrity?: string
  readonly license?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

const locked: Readonly<Record<string, Locked>> = lock.packages

/** The folders of the packages in a bundle, `node_modules/…`, sorted. */
export function packagesIn(...metafiles: readonly Metafile[]): string[] {
  const inputs = metafiles.flatMap(({ outputs }) =>
    Object.values(outputs).flatMap(output => Object.entries(output.inputs)),
  )
  const folders = inputs.flatMap(([path, { bytesInOutput }]) =>
    bytesInOutput > 0 ? (path.match(/node_modules\/(.*node_modules\/)?(@[^/]+\/)?[^/]+/)?.[0] ?? []) : [],
  )
  return [...new Set(folders)].sort()
}

/** @param name what the bundle is called */
export function sbomOf(name: string, metafile: Metafile): string {
  const own = new Models.Component(Enums.ComponentType.Application, name, {
    version: manifest.version,
    bomRef: name,
    purl: `pkg:npm/${manifest.name}@${manifest.version}`,
    licenses: new Models.LicenseRepository([new Models.SpdxLicense(manifest.license)]),
  })
  const folders = packagesIn(metafile)
  const components = new Map(folders.map(folder => [folder, componentOf(folder)]))
  for (const [folder, component] of components) {
    const { dependencies = {}, optionalDependencies = {} } = locked[folder] ?? {}
    for (const wanted of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const found = components.get(folderOf(wanted, folder))
      if (found) component.dependencies.add(found.bomRef)
    }
  }
  for (const wanted of Object.keys(manifest.dependencies)) {
    const found = components.get(`node_modules/${wanted}`)
    if (found) own.dependencies.add(found.bomRef)
  }
  const bom = new Models.Bom({
    metadata: new Models.Metadata({ component: own }),
    components: new Models.ComponentRepository(components.values()),
  })
  const serializer = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6))
  return `${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`
}

function componentOf(folder: string): Models.Component {
  const entry = locked[folder]
  if (!entry?.version || !entry.integrity)
    throw new Error(`${folder} is bundled, and package-lock.json does not say what it is`)
  const { version, integrity, license } = entry
  const full = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length)
  const [group, name] = full.startsWith('@') ? full.split('/') : [undefined, full]
  const [algorithm, hash = ''] = integrity.split('-')
  if (algorithm !== 'sha512') throw new Error(`${folder} has a hash of another sort in package-lock.json: ${algorithm}`)
  return new Models.Component(Enums.ComponentType.Library, name ?? full, {
    group,
    version,
    bomRef: folder,
    purl: `pkg:npm/${full.replace('@', '%40')}@${version}`,
    hashes: new Models.HashDictionary([[Enums.HashAlgorithm['SHA-512'], Buffer.from(hash, 'base64').toString('hex')]]),
    licenses: new Models.LicenseRepository(license ? [licenseOf(license)] : []),
  })
}

function licenseOf(text: string): Models.SpdxLicense | Models.LicenseExpression {
  return /^[\w.+-]+$/.test(text) ? new Models.SpdxLicense(text) : new Models.LicenseExpression(text)
}

/** Where a package is that another one requires: in its own folder, or in the nearest around it. */
function folderOf(wanted: string, by: string): string {
  for (let around = by; ; ) {
    const folder = `${around}/node_modules/${wanted}`
    if (locked[folder]) return folder
    const end = around.lastIndexOf('/node_modules/')
    if (end < 0) return `node_modules/${wanted}`
    around = around.slice(0, end)
  }
}
