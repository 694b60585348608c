/**
 * Copies the agent into a folder, with all it needs to start in any Linux container, whatever C library that has, or none: Node, Node's own loader and
 * libraries, the bundle, and shipmate-init. An init container does this into a volume; the sidecar is then the application's image with that volume.
 *
 * Guarantee: it may be done again, over an older one, while agents run from the folder. `command.json` is written last.
 */
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { copyFile, makeFolder, writeWhole } from './copy.ts'
import { readElf } from './elf.ts'
import { nodeEnvironment, nodeFlags } from './launch.ts'
import { CannotInstall, librariesOf } from './libraries.ts'

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
  checkInit(init)
  const node = nodeBinary(program, from)
  const { loader, files } = librariesOf(node, [join(dirname(node), 'lib')])
  const to = resolve(folder)
  const lib = join(to, 'lib')
  makeFolder(to)
  makeFolder(lib)
  for (const [name, path] of files) copyFile(path, join(lib, name))
  if (loader) copyFile(loader.path, join(lib, loader.name))
  copyFile(node, join(to, 'node'))
  copyFile(bundle, join(to, 'agent.cjs'))
  copyFile(init, join(to, 'shipmate-init'))
  const launch = {
    command: [
      join(to, 'shipmate-init'),
      'supervise',
      '--',
      ...(loader ? [join(lib, loader.name), '--library-path', lib] : []),
      join(to, 'node'),
      ...nodeFlags,
      join(to, 'agent.cjs'),
      'sidecar',
    ],
    env: nodeEnvironment,
  }
  writeWhole(join(to, 'command.json'), `${JSON.stringify(launch, null, 2)}\n`)
  return launch
}

function checkInit(path: string): void {
  if (!existsSync(path)) {
    throw new CannotInstall(
      `${path} is not there: it is built with a C compiler, by npm run build, and is in the sidecar's image`,
    )
  }
  if (readElf(path)?.interpreter !== undefined) {
    throw new CannotInstall(
      `${path} is not statically linked, so it would not start in another image: build it where there is a static C library`,
    )
  }
}

/** Started from such a folder, the program that the system sees is the loader. */
function nodeBinary(program: string, bundleFolder: string): string {
  return /^ld[-\w.]*\.so\.\d+$/.test(program.slice(program.lastIndexOf('/') + 1)) ? join(bundleFolder, 'node') : program
}
