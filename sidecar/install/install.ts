/**
 * Copies the agent into a folder, with all it needs to start in any Linux container, whatever C library that has, or none: Node, Node's own loader and
 * libraries, the bundle, and shipmate-init. An init container does this into a volume; the sidecar is then the application's image with that volume.
 *
 * Guarantees: it may be done again, over an older or a half-done one, while agents run from the folder. Node has been started from there once before
 * `command.json` is written, which is last.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { messageOf } from '../../shared/errors.ts'
import { installedCommand, nodeEnvironment, unset } from '../../shared/launch.ts'
import { clearDrafts, copyFile, link, makeFolder, openFolder, writeWhole } from './copy.ts'
import { readElf } from './elf.ts'
import { CannotInstall, foldersInUse, librariesOf } from './libraries.ts'

export interface InstallOptions {
  readonly folder: string
  /** The bundle to install; shipmate-init stands beside it. */
  readonly bundle: string
  /** The program that runs this, as the system knows it: Node, or the loader that Node was started by. */
  readonly program: string
}

/** What `command.json` says: how a container starts the agent, up to the word `sidecar`, and the environment it is given. */
export interface Launch {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

export function install({ folder, bundle, program }: InstallOptions): Launch {
  if (process.platform !== 'linux') {
    throw new CannotInstall(`the agent is installed on Linux, for containers; this is ${process.platform}`)
  }
  const from = dirname(bundle)
  const init = join(from, 'shipmate-init')
  const node = nodeBinary(program, from)
  const { loader, files } = librariesOf(node, [join(dirname(node), 'lib'), ...foldersInUse()])
  checkInit(init, node)
  const to = resolve(folder)
  const lib = join(to, 'lib')
  const start = [...(loader ? [join(to, 'ld.so'), '--library-path', lib] : []), join(to, 'node')]
  const env = { ...nodeEnvironment, ...unset }
  writing(to, () => {
    makeFolder(to)
    makeFolder(lib)
    openFolder(lib)
    clearDrafts(to)
    clearDrafts(lib)
    // Libraries first: an older Node starts with newer ones, not the other way round.
    for (const [name, path] of files) copyFile(path, join(lib, name))
    if (loader) {
      copyFile(loader.path, join(lib, loader.name))
      // One name on every processor, so that a pod template can be written for all.
      link(join('lib', loader.name), join(to, 'ld.so'))
    }
    copyFile(node, join(to, 'node'))
    copyFile(bundle, join(to, 'agent.cjs'))
    copyFile(init, join(to, 'shipmate-init'))
  })
  checkStart([...start, '--version'], env)
  const launch = { command: installedCommand(to, { loader: loader !== undefined }), env }
  writing(to, () => writeWhole(join(to, 'command.json'), `${JSON.stringify(launch, null, 2)}\n`))
  return launch
}

function writing(to: string, write: () => void): void {
  try {
    write()
  } catch (error) {
    throw new CannotInstall(`the agent cannot be copied to ${to}: ${messageOf(error)}`, { cause: error })
  }
}

function checkInit(path: string, node: string): void {
  if (!existsSync(path)) {
    throw new CannotInstall(
      `${path} is not there: it is built with a C compiler, by npm run build, and is in the sidecar's image`,
    )
  }
  const elf = readElf(path)
  if (elf?.machine !== readElf(node)?.machine) {
    throw new CannotInstall(`${path} is no program for the processor that ${node} is for: build it on this machine`)
  }
  if (elf?.interpreter !== undefined) {
    throw new CannotInstall(
      `${path} is not statically linked, so it would not start in another image: build it where there is a static C library`,
    )
  }
}

function checkStart([program = '', ...args]: readonly string[], env: Readonly<Record<string, string>>): void {
  const { error, status, signal, stderr } = spawnSync(program, args, { env, encoding: 'utf8' })
  if (error) {
    const isForbidden = 'code' in error && error.code === 'EACCES'
    const hint = isForbidden ? ': is that a volume mounted noexec?' : ''
    throw new CannotInstall(`${program} was copied, but cannot be executed there (${messageOf(error)})${hint}`)
  }
  if (status !== 0) {
    const said = stderr.trim().split('\n')[0] || `it ended with ${status ?? signal}`
    throw new CannotInstall(`Node was copied, but does not start from ${dirname(program)}: ${said}`)
  }
}

/** Started from such a folder, the program that the system sees is the loader. */
function nodeBinary(program: string, bundleFolder: string): string {
  return /^ld[-\w.]*\.so\.\d+$/.test(program.slice(program.lastIndexOf('/') + 1)) ? join(bundleFolder, 'node') : program
}
