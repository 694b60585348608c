/**
 * How a container's processes are apart from the machine's: in namespaces for mounts and process ids where the kernel permits it, as root or
 * in a user namespace; else in a session of their own, with paths rewritten.
 *
 * Everything is done by programs that each Linux has (`unshare`, `mount`, `pivot_root`, `nsenter`), so nothing is compiled or installed.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Bind, hostRoot, linkRoot, makeNested, prepareRoot } from './root.ts'

/** `root`: namespaces, by the rights of root. `user`: in a user namespace, too. `none`: rewritten paths. */
export type Isolation = 'root' | 'user' | 'none'

export interface Sandbox {
  readonly isolation: Isolation
  /** A pid namespace of its own: its first process's end is the end of all. */
  readonly hasPids: boolean
  /** Prefixes paths of volumes where they must be rewritten. */
  readonly root: string
  readonly targets: readonly string[]
  /** The command line that runs `argv` as the container's first process. It writes `go` to descriptor 3, or what is wrong. */
  start(argv: readonly string[]): string[]
  /** The command line that runs `argv` beside it. @param outer the process that was started @param first the container's first process */
  enter(argv: readonly string[], outer: number, first: number): string[]
}

const quote = (word: string) => `'${word.replaceAll("'", "'\\''")}'`

/** Ends in the command. `command -v` takes no `--` everywhere. */
const run = (exec: string) => `
case $1 in
  */*) [ -f "$1" ] && [ -x "$1" ] || { echo "exec: \\"$1\\": no such file, or it cannot be executed" >&3; exit 127; } ;;
  *) command -v "$1" >/dev/null 2>&1 || { echo "exec: \\"$1\\": executable file not found in \\$PATH" >&3; exit 127; } ;;
esac
echo go >&3
exec 3>&-
${exec}exec "$@"
`

export function createSandbox(options: {
  readonly isolation: Isolation
  readonly hasPids: boolean
  readonly root: string
  readonly binds: readonly Bind[]
  /** Where its processes begin; made if there is no such folder, in its own tree. */
  readonly cwd: string
}): Sandbox {
  const { isolation, root, cwd } = options
  const binds = [...options.binds].sort((a, b) => a.target.length - b.target.length)
  const targets = binds.map(({ target }) => target)
  if (isolation === 'none') {
    linkRoot(root, binds)
    // Without a word on it, not in the machine's own root.
    const place = cwd !== '/' && existsSync(cwd) ? cwd : join(root, cwd)
    mkdirSync(place, { recursive: true })
    const inPlace = `cd ${quote(place)} || exit 126\n`
    return {
      ...{ isolation, root, targets, hasPids: false },
      start: argv => ['/bin/sh', '-c', `${inPlace}${run('')}`, 'container', ...argv],
      enter: argv => ['/bin/sh', '-c', `${inPlace}exec "$@"`, 'container', ...argv],
    }
  }
  const { hasPids } = options
  makeNested(binds)
  const tops = prepareRoot(root, binds, cwd)
  const ids = `--map-user=${process.getuid?.() ?? 0} --map-group=${process.getgid?.() ?? 0}`
  // Back to who it was: programs that refuse to run as root see that they do not.
  const asSelf = isolation === 'user' ? ['unshare', '--user', ...ids.split(' '), '--'] : []
  const proc = hasPids
    ? `mount -t proc proc ${quote(join(root, 'proc'))} 2>/dev/null || mount --rbind /proc ${quote(join(root, 'proc'))}`
    : `mount --rbind /proc ${quote(join(root, 'proc'))}`
  const lines = [
    'fail() { echo "$1" >&3; exit 126; }',
    `mount --bind ${quote(root)} ${quote(root)} || fail 'the file tree cannot be mounted'`,
    ...tops.map(
      top => `mount --rbind ${quote(top)} ${quote(join(root, top))} || fail ${quote(`${top} cannot be mounted`)}`,
    ),
    proc,
    `cd ${quote(root)} && pivot_root . .${hostRoot} && cd / || fail 'the file tree cannot be changed'`,
    ...binds.flatMap(({ source, target, isFile, isReadOnly }) => {
      const parent = target.slice(0, target.lastIndexOf('/')) || '/'
      const place = isFile ? `mkdir -p ${quote(parent)} && : >>${quote(target)}` : `mkdir -p ${quote(target)}`
      const bind = `mount --bind ${quote(hostRoot + source)} ${quote(target)} || fail ${quote(`${target} cannot be mounted`)}`
      const readOnly = isReadOnly ? [`mount -o remount,ro,bind ${quote(target)} 2>/dev/null || :`] : []
      return [`[ -e ${quote(target)} ] || { ${place}; }`, bind, ...readOnly]
    }),
  ]
  const unshare = [
    ...['unshare', '--mount'],
    ...(isolation === 'user' ? ['--user', '--map-root-user'] : []),
    ...(hasPids ? ['--pid', '--fork', '--kill-child'] : []),
  ]
  return {
    ...{ isolation, root, targets, hasPids },
    start(argv) {
      const script = [
        ...lines,
        `cd ${quote(cwd)} || fail 'there is no working folder'`,
        run(asSelf.length > 0 ? `set -- ${asSelf.join(' ')} "$@"\n` : ''),
      ]
      return [...unshare, '--', '/bin/sh', '-c', script.join('\n'), 'container', ...argv]
    },
    enter(argv, outer, first) {
      const user = isolation === 'user' ? [`--user=/proc/${outer}/ns/user`, '--preserve-credentials'] : []
      const pids = hasPids ? [`--pid=/proc/${first}/ns/pid`] : []
      const inside = ['/bin/sh', '-c', `cd ${quote(cwd)}\nexec "$@"`, 'container', ...asSelf, ...argv]
      return ['nsenter', ...user, `--mount=/proc/${outer}/ns/mnt`, ...pids, '--', ...inside]
    },
  }
}

let found: Isolation | undefined

/** The best way that works here: it is tried. */
export function isolationHere(): Isolation {
  if (process.platform !== 'linux') return 'none'
  found ??= (['root', 'user'] as const).find(works) ?? 'none'
  return found
}

function works(isolation: Isolation): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'shipmate-sandbox-'))
  try {
    const source = join(folder, 'volume')
    mkdirSync(source)
    const bind: Bind = { source, target: '/shipmate/sandbox', isFile: false, isReadOnly: false }
    const sandbox = createSandbox({ isolation, hasPids: true, root: join(folder, 'root'), binds: [bind], cwd: '/' })
    const [file = '', ...args] = sandbox.start(['test', '-d', '/shipmate/sandbox'])
    return spawnSync(file, args, { stdio: ['ignore', 'ignore', 'ignore', 'ignore'] }).status === 0
  } catch {
    return false
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
