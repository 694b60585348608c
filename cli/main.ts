/**
 * The command line, `shipmate` and `kubectl shipmate`. It answers with an exit code: 0, or 2 when it was called the wrong way.
 * Every command is loaded when it is asked for, so that `--help` costs nothing. `sidecar` and `install-agent` do not come here: bin/shipmate.cjs.
 */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

const help = `Usage: shipmate COMMAND [options]

A lifecycle for stateful applications on Kubernetes.

Commands:
  sidecar        the agent beside an application (shipmate sidecar --help)
  install-agent  copy the agent into a folder, for an image of the application's own (shipmate install-agent --help)

Options:
  -V, --version  print the version
  -h, --help     print this help
`

export async function main(argv: string[]): Promise<number> {
  const asked = parse(argv)
  if ('misuse' in asked) {
    process.stderr.write(`shipmate: ${asked.misuse}: see shipmate --help.\n`)
    return 2
  }
  process.stdout.write(asked.version ? `${version()}\n` : help)
  return 0
}

function parse(argv: string[]): { version: boolean } | { misuse: string } {
  const options = {
    version: { type: 'boolean', short: 'V', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  } as const
  const { tokens, values } = parseArgs({ args: argv, options, strict: false, tokens: true })
  for (const token of tokens) {
    if (token.kind === 'positional') return { misuse: `unknown command "${token.value}"` }
    if (token.kind === 'option' && !Object.hasOwn(options, token.name))
      return { misuse: `unknown option "${token.rawName}"` }
  }
  return { version: values.version === true && !values.help }
}

function version(): string {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version
}
