/**
 * The configuration in force: read from FILE, followed as it changes, and kept for the next start.
 *
 * Guarantees: only a configuration without errors, and with a valid signature where one is wanted, comes into force; one that is refused changes
 * nothing but the reason that is told. A change of FILE is seen within about a second, even if no event comes and whatever its order with the reading.
 */
import { type FSWatcher, watch } from 'node:fs'
import { dirname, join } from 'node:path'
import { sha256 } from '../../shared/canonical.ts'
import type { Clock, Timer } from '../../shared/clock.ts'
import type { Logger } from '../../shared/log.ts'
import { type Config, type Examined, examineParsed, linesOf } from './examine.ts'
import { keep, readKept } from './kept.ts'
import { specOf } from './manifest.ts'
import { parseConfig } from './parse.ts'
import { signatureProblem } from './signature.ts'
import { sourceOf } from './source.ts'

/** How often FILE is looked at, in milliseconds, besides the events of the file system. */
const every = 1000
/** A file that was changed so recently may change again without another time of change: it is read once more. In milliseconds. */
const recent = 2000

export interface ConfigStoreOptions {
  /** FILE: YAML or JSON, as `--config` names it. It need not be there yet. */
  readonly file: string
  /** STATE-DIR, which is there. */
  readonly stateDir: string
  readonly clock: Clock
  readonly log: Logger
  /** Where a signature is wanted, as with `--auth mtls`: `lifecycle.sig` beside FILE, `lifecycle.pub` in `tlsDir`. Default: none is looked for. */
  readonly signature?: {
    readonly tlsDir: string
    /** The pod's namespace. */
    readonly namespace: string
    /** The lifecycle's name. */
    readonly name: string
  }
  /** Another configuration came into force, or the first one; or FILE holds again what is in force, after it was refused. */
  onChange(config: Config): void
  /** What FILE holds is not in force, and why. Called once for each reason. */
  onRefused?(reason: string): void
}

export interface ConfigStore {
  /** Reads FILE, or what was kept, and begins to follow it. Callbacks come from here on, the first ones before it returns. */
  start(): void
  /** What is in force; undefined until there is one. */
  current(): Config | undefined
  /** Why what FILE holds is not in force; undefined if it is. */
  refused(): string | undefined
  stop(): void
}

export function createConfigStore(options: ConfigStoreOptions): ConfigStore {
  const { file, stateDir, clock, log, signature } = options
  const files = signature
    ? [file, join(dirname(file), 'lifecycle.sig'), join(signature.tlsDir, 'lifecycle.pub')]
    : [file]
  const source = sourceOf(files)
  let current: Config | undefined
  let refused: string | undefined
  let print: string | undefined
  let digest: string | undefined
  let isRecent = true
  let unkept: Config | undefined
  let watcher: FSWatcher | undefined
  let timer: Timer | undefined
  let isStopped = false

  const refuse = (reason: string) => {
    if (reason === refused) return
    refused = reason
    log.warn({ file, reason, configHash: current?.hash }, 'configuration refused')
    options.onRefused?.(reason)
  }

  const accept = (config: Config, isNew: boolean) => {
    const wasRefused = isNew && refused !== undefined
    if (isNew) refused = undefined
    if (config.hash === current?.hash) {
      if (wasRefused) restored(current)
      return
    }
    current = config
    if (isNew) unkept = config
    log.info({ file, configHash: config.hash, kept: !isNew }, 'configuration in force')
    options.onChange(config)
  }

  const restored = (config: Config) => {
    log.info({ file, configHash: config.hash }, 'the configuration in force is not refused any more')
    options.onChange(config)
  }

  const keepCurrent = () => {
    if (!unkept) return
    try {
      keep(stateDir, { spec: unkept.spec, isSigned: signature !== undefined })
      unkept = undefined
    } catch (thrown) {
      log.debug({ err: thrown }, 'configuration not kept, tried again')
    }
  }

  const examineTexts = ([text = '', sig = '', keys = '']: readonly string[]): Examined | { reason: string } => {
    const parsed = specOf(parseConfig(text))
    const [wrong] = linesOf(
      file,
      parsed.problems.map(problem => ({ ...problem, severity: 'error' })),
    )
    if (wrong !== undefined) return { reason: wrong }
    if (signature) {
      const { namespace, name } = signature
      const reason = signatureProblem({ namespace, name, spec: parsed.value }, sig, keys)
      if (reason !== undefined) return { reason: `${file}: ${reason}` }
    }
    return examineParsed(parsed)
  }

  const load = () => {
    const before = source.fingerprint()
    const read = source.read()
    isRecent = !read || source.changedAt() > clock.now() - recent
    print = before
    if (!read) return
    if ('reason' in read) {
      digest = undefined
      return refuse(read.reason)
    }
    const now = sha256(read.texts.join('\0'))
    if (now === digest) return
    digest = now
    const examined = examineTexts(read.texts)
    if ('reason' in examined) return refuse(examined.reason)
    const { config, problems } = examined
    const lines = linesOf(file, problems)
    if (!config) return refuse(lines.slice(0, 10).join('\n'))
    for (const line of lines) log.warn({ file }, line)
    accept(config, true)
  }

  const look = () => {
    if (isStopped) return
    if (isRecent || source.fingerprint() !== print) load()
    keepCurrent()
    follow()
  }

  /** Events come sooner than the next look; without them it is as right, only later. */
  const follow = () => {
    if (watcher || isStopped) return
    try {
      watcher = watch(dirname(file), { persistent: false }, look)
      watcher.on('error', () => {
        watcher?.close()
        watcher = undefined
      })
    } catch {
      watcher = undefined
    }
  }

  const tick = () => {
    timer = clock.after(every, tick)
    look()
  }

  const useKept = () => {
    const kept = readKept(stateDir)
    if (!kept) return
    if (signature && !kept.isSigned) return log.warn('the kept configuration is not signed, and is not used')
    const { config, problems } = examineParsed({
      value: kept.spec,
      problems: [],
      locate: () => ({ line: 1, column: 1 }),
    })
    if (config) accept(config, false)
    else log.warn({ reason: problems[0]?.message }, 'the kept configuration is not used')
  }

  return {
    start() {
      if (timer || isStopped) return
      tick()
      if (!current) useKept()
    },
    current: () => current,
    refused: () => refused,
    stop() {
      isStopped = true
      timer?.cancel()
      watcher?.close()
      watcher = undefined
    },
  }
}
