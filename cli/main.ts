/**
 * The command line, `shipmate` and `kubectl shipmate`. It answers with an exit code: 0; 1 when what was asked for could not be done; 2 when it was called
 * the wrong way. Nothing but the answer goes to stdout.
 *
 * Every command is loaded when it is asked for, so that `--help` costs nothing. `sidecar` and `install-agent` do not come here: bin/shipmate.cjs.
 */
import { Command, CommanderError, Help } from 'commander'
import { ShipmateError } from '../shared/errors.ts'
import { nearest } from '../shared/nearest.ts'
import { Failure, Misuse } from './ending.ts'
import { manifest } from './package.ts'

/** What the file of a command exports. */
interface Loaded {
  /** Adds its arguments, options and action. */
  define(command: Command): void
}

interface Listed {
  readonly summary: string
  /** Absent in a group, and in what stands in bin/shipmate.cjs and here for the help alone. */
  readonly load?: () => Promise<Loaded>
  readonly commands?: Readonly<Record<string, Listed>>
}

const commands: Readonly<Record<string, Listed>> = {
  new: {
    summary: 'start a project',
    commands: {
      operator: {
        summary: 'a project of an operator that builds, tests and runs',
        load: () => import('./commands/new-operator.ts'),
      },
    },
  },
  operator: {
    summary: "install, run and deploy the operator of this folder's project",
    commands: {
      install: {
        summary: 'put its custom resource definitions on the cluster',
        load: () => import('./commands/operator-install.ts'),
      },
      run: { summary: 'run it here, against the cluster', load: () => import('./commands/operator-run.ts') },
      image: { summary: 'build its image', load: () => import('./commands/operator-image.ts') },
      deploy: {
        summary: 'run it on the cluster: definitions, account, roles and Deployment',
        load: () => import('./commands/operator-deploy.ts'),
      },
      undeploy: {
        summary: 'take it off the cluster; definitions and custom resources stay',
        load: () => import('./commands/operator-undeploy.ts'),
      },
      uninstall: {
        summary: 'take its definitions off the cluster, if no custom resource is left',
        load: () => import('./commands/operator-uninstall.ts'),
      },
      manifests: {
        summary: 'print all that deploy would apply',
        load: () => import('./commands/operator-manifests.ts'),
      },
    },
  },
  gen: {
    summary: 'generate code and manifests',
    commands: {
      resource: { summary: 'the code of a child resource', load: () => import('./commands/gen-resource.ts') },
      crd: { summary: 'the CRDs of the kinds that a file defines', load: () => import('./commands/gen-crd.ts') },
      rbac: { summary: 'what the operators of a file may do, no wider', load: () => import('./commands/gen-rbac.ts') },
    },
  },
  controller: {
    summary: 'look after apps on the cluster, until it is stopped',
    load: () => import('./commands/controller.ts'),
  },
  sidecar: { summary: 'the agent beside an application' },
  'install-agent': { summary: "copy the agent into a folder, for an image of the application's own" },
}

export async function main(argv: string[]): Promise<number> {
  const program = programOf()
  let addressed = program
  try {
    addressed = await loadAddressed(program, argv)
    await program.parseAsync(argv, { from: 'user' })
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
function programOf(): Command {
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
  answerByHelp(program)
  for (const [name, listed] of Object.entries(commands)) {
    const command = program.command(name).summary(listed.summary).description(sentenceOf(listed.summary))
    if (listed.commands) {
      answerByHelp(command.usage('COMMAND [options]').helpCommand(false))
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
function answerByHelp(command: Command): void {
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
    if (command.opts().version) process.stdout.write(`${manifest().version}\n`)
    else command.outputHelp()
  })
}

/** Loads the command that the words of the command line lead to, and answers it; or the group at which they stop leading anywhere. */
async function loadAddressed(program: Command, argv: readonly string[]): Promise<Command> {
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
