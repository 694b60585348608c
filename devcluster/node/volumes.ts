/**
 * A pod's volumes as folders: those of objects are kept up to date while the pod lives, those of claims outlive it.
 */
import { existsSync, mkdirSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { join, normalize } from 'node:path'
import { type ApiServer, accountFiles, accountKubeconfig, accountPath } from './account.ts'
import { writeFiles } from './atomic.ts'
import type { Place } from './downward.ts'
import { ConfigError } from './environment.ts'
import { expand } from './expand.ts'
import { isPayload, payloadOf, type Sources } from './payload.ts'
import type { Bind } from './root.ts'
import type { ContainerSpec, Pod, Volume } from './spec.ts'

export interface Volumes {
  /** Makes all folders, or brings them up to date; undefined, or what is missing, by the volume's name. */
  update(pod: Pod): { readonly volume: string; readonly missing: string } | undefined
  /** Throws a ConfigError where a container asks for what cannot be. */
  bindsOf(spec: ContainerSpec, env: Readonly<Record<string, string>>): Bind[]
  /** A kubeconfig as the pod's account; undefined where it has none. */
  kubeconfig(): string | undefined
}

export interface VolumesOptions {
  /** The pod's. */
  readonly folder: string
  readonly claims: string
  readonly place: Place
  readonly sources: Sources
  readonly server: ApiServer | undefined
}

/** What is asked of the account where the spec does not say. */
export const ownToken = { audience: undefined, seconds: 3607 }

export function createVolumes(first: Pod, { folder, claims, place, sources, server }: VolumesOptions): Volumes {
  let pod = first
  const volumes = pod.spec?.volumes ?? []
  const namespace = pod.metadata.namespace ?? ''
  const claimFolder = (name: string) => join(claims, namespace, name)
  const accountFolder = join(folder, 'account')

  function folderOf(volume: Volume): string {
    const { persistentVolumeClaim, ephemeral, hostPath } = volume
    if (persistentVolumeClaim) return claimFolder(persistentVolumeClaim.claimName)
    if (ephemeral) return claimFolder(`${pod.metadata.name}-${volume.name}`)
    return hostPath ? hostPath.path : join(folder, 'volumes', volume.name)
  }

  function make(volume: Volume): string | undefined {
    const { emptyDir, persistentVolumeClaim, ephemeral, hostPath } = volume
    if (isPayload(volume)) {
      const payload = payloadOf(pod, volume, place, sources)
      if ('missing' in payload) return payload.missing
      writeFiles(folderOf(volume), payload.files)
    } else if (emptyDir || persistentVolumeClaim || ephemeral) mkdirSync(folderOf(volume), { recursive: true })
    else if (hostPath) {
      if (hostPath.type === 'DirectoryOrCreate') mkdirSync(hostPath.path, { recursive: true })
      if (!existsSync(hostPath.path)) return `hostPath ${hostPath.path} does not exist`
    } else return 'volumes of this type are not supported here'
    return undefined
  }

  const account = () => {
    const token = sources.token(ownToken)
    const ca = sources.configMap(namespace, 'kube-root-ca.crt')?.data?.['ca.crt'] ?? server?.ca
    return token === undefined || ca === undefined ? undefined : accountFiles(token, ca, namespace)
  }

  return {
    update(now) {
      pod = now
      mkdirSync(folder, { recursive: true })
      const files = account()
      if (files) writeFiles(accountFolder, files)
      for (const volume of volumes) {
        const missing = make(volume)
        if (missing !== undefined) return { volume: volume.name, missing }
      }
      return undefined
    },
    bindsOf(spec, env) {
      const binds = (spec.volumeMounts ?? []).map((mount): Bind => {
        const volume = volumes.find(({ name }) => name === mount.name)
        if (!volume) throw new ConfigError(`there is no volume "${mount.name}"`)
        const sub = mount.subPathExpr === undefined ? (mount.subPath ?? '') : expand(mount.subPathExpr, env)
        if (normalize(sub).startsWith('..')) throw new ConfigError(`subPath "${sub}" leaves its volume`)
        const path = join(folderOf(volume), sub)
        if (sub !== '' && !existsSync(path)) {
          if (isPayload(volume)) throw new ConfigError(`subPath "${sub}" is not in volume "${mount.name}"`)
          mkdirSync(path, { recursive: true })
        }
        // A part of a volume stays what it was when the container started, as on a kubelet.
        const source = realpathSync(path)
        const isReadOnly = mount.readOnly === true || isPayload(volume)
        return { source, target: trimmed(mount.mountPath), isFile: statSync(source).isFile(), isReadOnly }
      })
      const hasOwn = binds.some(({ target }) => target === accountPath)
      if (!hasOwn && existsSync(accountFolder) && pod.spec?.automountServiceAccountToken !== false)
        binds.push({ source: accountFolder, target: accountPath, isFile: false, isReadOnly: true })
      return binds
    },
    kubeconfig() {
      if (!server || !existsSync(accountFolder)) return undefined
      const path = join(folder, 'kubeconfig')
      writeFileSync(path, accountKubeconfig(server, join(accountFolder, 'token'), namespace), { mode: 0o600 })
      return path
    },
  }
}

const trimmed = (path: string) => normalize(path).replace(/(.)\/+$/, '$1')
