/**
 * The hash of a file's content, read in pieces.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'

/** The hex SHA-256, or '' if the file is not there or cannot be read. */
export async function hashOfFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  try {
    for await (const piece of createReadStream(path)) hash.update(piece)
  } catch {
    return ''
  }
  return hash.digest('hex')
}
