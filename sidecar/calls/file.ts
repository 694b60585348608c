/**
 * A file of somebody else's: its beginning, or the hash of its content, read piece by piece.
 *
 * Guarantee: never waits for a pipe or a device.
 */
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'

const pieceSize = 64 * 1024

/** The hex SHA-256 of an open file. Rejects when the signal is aborted. */
export async function hashOfOpen(file: FileHandle, signal?: AbortSignal): Promise<string> {
  const sum = process.getBuiltinModule('node:crypto').createHash('sha256')
  const piece = Buffer.allocUnsafe(pieceSize)
  for (let position = 0; ; ) {
    signal?.throwIfAborted()
    const { bytesRead } = await file.read(piece, 0, pieceSize, position)
    if (bytesRead === 0) return sum.digest('hex')
    sum.update(piece.subarray(0, bytesRead))
    position += bytesRead
  }
}

/** Opened without waiting: opening a pipe would wait for who writes into it. Not a regular file: undefined. */
export async function openRegular(path: string): Promise<FileHandle | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if ((await file.stat()).isFile()) return file
  } catch (error) {
    await file.close()
    throw error
  }
  await file.close()
  return undefined
}

/** The beginning of an open file, `limit` bytes at most. */
export async function readStart(file: FileHandle, limit: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(limit)
  for (let length = 0; ; ) {
    const { bytesRead } = await file.read(bytes, length, limit - length, length)
    length += bytesRead
    if (bytesRead === 0 || length === limit) return bytes.subarray(0, length)
  }
}

/** The hex SHA-256, or '' if there is no such file, or it cannot be read. */
export async function hashOfFile(path: string): Promise<string> {
  try {
    await using file = await openRegular(path)
    return file ? await hashOfOpen(file) : ''
  } catch {
    return ''
  }
}
