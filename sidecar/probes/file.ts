/**
 * One attempt of a probe of a file: whether it is there, what its content says, whether that has changed.
 *
 * Guarantees: never waits for a pipe or a device. A pattern sees at most the first 1 MiB; a hash is computed piece by piece, and given up when the signal is
 * aborted.
 */
import { type FileHandle, stat } from 'node:fs/promises'
import type { Probe } from '../../shared/lifecycle/model.ts'
import { type Attempt, no, none, yes } from '../../shared/lifecycle/threshold.ts'
import { hashOfOpen, openRegular } from '../calls/file.ts'

/** The hash that each file had when it was first seen, by path. */
export type SeenFiles = Map<string, string>

/** How much of a file a pattern sees. */
const patternLimit = 1 << 20
const pieceSize = 64 * 1024

export async function probeFile(
  { path, exists = true, pattern, changed }: NonNullable<Probe['file']>,
  { seen, signal }: { readonly seen: SeenFiles; readonly signal: AbortSignal },
): Promise<Attempt> {
  const quoted = JSON.stringify(path)
  try {
    if (!exists || (pattern === undefined && changed === undefined)) {
      await stat(path)
      return exists ? yes(null) : no(null, `${quoted} exists`)
    }
    await using file = await openRegular(path)
    if (!file) return none(`${quoted} is no regular file`)
    let value: string | null = null
    if (changed !== undefined) {
      value = await hashOfOpen(file, signal)
      const first = seen.get(path) ?? value
      seen.set(path, first)
      if ((value !== first) !== changed) {
        return no(value, changed ? `${quoted} is as it was first seen` : `${quoted} has changed`)
      }
    }
    if (pattern === undefined) return yes(value)
    const { text, isWhole } = await beginning(file, signal)
    const match = new RegExp(pattern, 'm').exec(text)
    if (match) return yes(match[1] ?? match[0])
    return no(value, `${isWhole ? '' : 'the first 1 MiB of '}${quoted} does not match ${pattern}`)
  } catch (error) {
    if (!isMissing(error)) throw error
    return exists ? no(null, `${quoted} does not exist`) : yes(null)
  }
}

const isMissing = (error: unknown) => ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')

async function beginning(file: FileHandle, signal: AbortSignal): Promise<{ text: string; isWhole: boolean }> {
  const pieces: Buffer[] = []
  let length = 0
  // One byte more than is used tells whether there is more.
  while (length <= patternLimit) {
    signal.throwIfAborted()
    const piece = Buffer.allocUnsafe(Math.min(pieceSize, patternLimit + 1 - length))
    const { bytesRead } = await file.read(piece, 0, piece.length, length)
    if (bytesRead === 0) break
    pieces.push(piece.subarray(0, bytesRead))
    length += bytesRead
  }
  return {
    text: Buffer.concat(pieces, Math.min(length, patternLimit)).toString('utf8'),
    isWhole: length <= patternLimit,
  }
}
