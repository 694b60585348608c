/**
 * What runs in the stead of images on the embedded node: Shipmate's own programs, and those of examples/kv.
 */
import { chmodSync, copyFileSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Image } from '../../devcluster/node/images.ts'
import type { Isolation } from '../../devcluster/node/sandbox.ts'
import { packageFolder } from '../package.ts'

const agent = join(packageFolder, 'dist/agent.cjs')
const compiledInit = join(packageFolder, 'dist/shipmate-init')

/** Where there is no C compiler, or no Linux, the agent is its container's first process. */
export const hasSupervisor = existsSync(compiledInit)

/** Unpacks the programs into a folder. @param isolation where containers have no file tree of their own, kvctl is told where theirs is */
export function unpack(folder: string, isolation: Isolation): Record<string, Image> {
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  // Copied, as Node runs no TypeScript from a package that is installed.
  for (const name of ['kv', 'kvctl'])
    copyFileSync(join(packageFolder, `examples/kv/${name}.ts`), join(folder, `${name}.ts`))
  // Paths of mounts are rewritten in what a pod's spec says, not in what a Lifecycle does: there a command begins in the root of its container's tree.
  const root = isolation === 'none' ? 'KV_ROOT=$PWD ' : ''
  script(join(bin, 'kv'), `exec "${process.execPath}" "${join(folder, 'kv.ts')}" "$@"`)
  script(join(bin, 'kvctl'), `${root}exec "${process.execPath}" "${join(folder, 'kvctl.ts')}" "$@"`)
  if (hasSupervisor) symlinkSync(compiledInit, join(bin, 'shipmate-init'))
  else script(join(bin, 'shipmate-init'), `exec "${process.execPath}" "${agent}" sidecar "$@"`)
  symlinkSync(process.execPath, join(bin, 'node'))

  const env = { PATH: [bin, process.env['PATH']].join(delimiter), NODE_NO_WARNINGS: '1' }
  const supervise = hasSupervisor ? [compiledInit, 'supervise', '--'] : []
  // As in Dockerfile.sidecar, but at the pod's address; where pods have none of their own, declared ports become those that it has here.
  const host = process.platform === 'linux' ? '$(HOST)' : '0.0.0.0'
  const listen = ['--listen', `${host}:7443`, '--public-listen', `${host}:7080`]
  const sidecar: Image = { command: [...supervise, process.execPath, agent, 'sidecar', ...listen], env }
  return {
    'shipmate-sidecar': sidecar,
    'shipmate-kv': sidecar,
    'shipmate-controller': { command: [process.execPath, join(packageFolder, 'bin/shipmate.cjs'), 'controller'], env },
  }
}

/** A program of a few lines. */
export function script(path: string, text: string): void {
  writeFileSync(path, `#!/bin/sh\n${text}\n`)
  chmodSync(path, 0o755)
}
