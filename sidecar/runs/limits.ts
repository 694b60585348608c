/**
 * What the system, and the wrapper, can take of a run's parameters. Pure.
 *
 * Guarantee: what passes can be handed to a command; what is refused is told by its name and its size, never by its value, which may be secret.
 */
import { type Params, spellings } from './environment.ts'

/** Linux takes no longer argument and no longer `NAME=value`, in bytes. */
const longest = 131_071
/** How much the wrapper takes of what it is to keep out of the log, in bytes, with a length before each. */
const mostSpelled = 1024 * 1024 - 1

/** Throws if the system has no room for one of them. */
export function checkVariables(env: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(env)) checkText(`the variable ${name}`, value, name.length + 1)
}

/** The same for the arguments of a command. */
export function checkArguments(command: readonly string[]): void {
  for (const [index, argument] of command.entries()) checkText(`argument ${index} of the command`, argument, 0)
}

/** Throws if the secrets are more than can be looked for in what the command prints. */
export function checkSpellings(params: Params): void {
  const bytes = spellings(params).reduce((sum, spelling) => sum + 4 + Buffer.byteLength(spelling), 4)
  if (bytes <= mostSpelled) return
  const names = params.secrets.filter(name => Object.hasOwn(params.values, name)).join(', ')
  throw new RangeError(
    `the secret parameters (${names}) are too long to be kept out of the log: they have ${bytes} bytes in all their spellings, ${mostSpelled} at most`,
  )
}

function checkText(what: string, text: string, more: number): void {
  if (text.includes('\0')) throw new TypeError(`${what} would have a NUL character, which it cannot hold`)
  const bytes = Buffer.byteLength(text) + more
  if (bytes > longest) throw new RangeError(`${what} would have ${bytes} bytes; it can have ${longest} at most`)
}
