/**
 * A command line from a tree of commands. It answers with an exit code: 0; 1 when what was asked for could not be done; 2 when it was called the wrong way.
 * Nothing but the answer goes to stdout.
 *
 * Every command is loaded when it is asked for, so that `--help` costs nothing.
 */
import { Command, CommanderError, Help } from 'commander'
import { ShipmateError } from '../shared/errors.ts'
import { nearest } from '../shared/nearest.ts'
import { Failure, Misuse } from './ending.ts'

/** What the file of a command exports. */
interface Loaded {
  /** Adds its arguments, options and action. */
  define(command: Command): void
}

export interface Listed {
  readonly summary: string
  /** Absent in a group, and in what stands elsewhere and is here for the help alone. */
  readonly load?: () => Promise<Loaded>
  readonly commands?: Readonly<Record<string, Listed>>
}

export interface Program {
  readonly commands: Readonly<Record<string, Listed>>
  /** What `--version` prints. */
  version(): string
}

export async function runProgram(described: Program, argv: readonly string[]): Promise<number> {
  const program = programOf(described)
  let addressed = program
  try {
    addressed = await loadAddressed(program, described.commands, argv)
    await program.parseAsync([...argv], { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0
    if (error instanceof Failure && error.message === '') return error.exitCode
    const { sentence, code } = endingOf(error, addressed)
    process.stderr.write(`shipmate: ${sentence}\n`)
    return code
  }
}

/** Every command by its name and summary, none of them loaded. */
function programOf({ commands, version }: Program): Command {
  const program = new Command('shipmate')
    .description('A lifecycle for stateful applications on Kubernetes.')
    .usage('COMMAND [options]')
    .option('-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .enablePositionalOptions()
    .showSuggestionAfterError(false)
    .exitOverride()
    .configureOutput({ outputError: () => undefined })
    .configureHelp({ subcommandTerm: command => new Help().subcommandTerm(command).replace(/ \[options\].*/, '') })
  answerByHelp(program, version)
  for (const [name, listed] of Object.entries(commands)) {
    const command = program.command(name).summary(listed.summary).description(sentenceOf(listed.summary))
    if (listed.commands) {
      answerByHelp(command.usage('COMMAND [options]').helpCommand(false), version)
      for (const [word, { summary }] of Object.entries(listed.commands))
        command.command(word).summary(summary).description(sentenceOf(summary))
    } else if (!listed.load) {
      command.action(() => {
        throw new Misuse(`"${name}" has to be the first word`)
      })
    }
  }
  return program
}

/** A command that has commands: by itself it prints its help. */
function answerByHelp(command: Command, version: Program['version']): void {
  command.allowExcessArguments().action(() => {
    const [unknown] = command.args
    if (unknown !== undefined) {
      throw new Misuse(
        `unknown command "${unknown}"${meant(
          unknown,
          command.commands.map(one => one.name()),
        )}`,
      )
    }
    if (command.opts().version) process.stdout.write(`${version()}\n`)
    else command.outputHelp()
  })
}

/** Loads the command that the words of the command line lead to, and answers it; or the group at which they stop leading anywhere. */
async function loadAddressed(
  program: Command,
  commands: Program['commands'],
  argv: readonly string[],
): Promise<Command> {
  let command = program
  let among: Readonly<Record<string, Listed>> = commands
  for (const word of argv.filter(argument => !argument.startsWith('-') && argument !== 'help')) {
    const listed: Listed | undefined = Object.hasOwn(among, word) ? among[word] : undefined
    const next = command.commands.find(one => one.name() === word)
    if (!listed || !next) return command
    command = next
    if (listed.load) (await listed.load()).define(command.allowExcessArguments(false))
    if (!listed.commands) return command
    among = listed.commands
  }
  return command
}

function endingOf(error: unknown, addressed: Command): { sentence: string; code: number } {
  if (error instanceof Failure) return { sentence: error.message, code: error.exitCode }
  if (error instanceof ShipmateError) return { sentence: `${error.message}.`, code: 1 }
  const misuse =
    error instanceof Misuse ? error.message : error instanceof CommanderError ? misuseOf(error, addressed) : undefined
  if (misuse === undefined)
    return { sentence: error instanceof Error ? (error.stack ?? error.message) : String(error), code: 1 }
  const see = `see ${pathOf(addressed)} --help.`
  return { sentence: misuse.endsWith('?') ? `${misuse} S${see.slice(1)}` : `${misuse}: ${see}`, code: 2 }
}

/** What commander says, in our words. */
function misuseOf({ code, message }: CommanderError, addressed: Command): string {
  const said = message
    .replace(/^error: /, '')
    .replace(/\.$/, '')
    .replaceAll("'", '"')
  if (code !== 'commander.unknownOption') return said
  const option = /"(.*)"/.exec(said)?.[1] ?? ''
  return `${said}${meant(
    option,
    addressed.options.flatMap(({ long }) => long ?? []),
  )}`
}

function meant(name: string, known: readonly string[]): string {
  const near = nearest(name, known)
  return near === undefined ? '' : `, did you mean "${near}"?`
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()
}

function sentenceOf(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`
}
