/**
 * How a command ends when it does not succeed. Each is told in one sentence on stderr; anything else that is thrown is a fault of ours.
 */

/** It was called the wrong way: exit code 2. */
export class Misuse extends Error {}

/** It was called the right way and did not do what was asked: exit code 1, or another's own. Without a message that other has told why. */
export class Failure extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}
