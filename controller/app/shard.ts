/**
 * Which process looks after an app where there are several: by the hash of the app's uid. Pure.
 */
import { createHash } from 'node:crypto'

export interface Shard {
  /** From 0. */
  readonly index: number
  readonly count: number
}

/** `0/3`; undefined for what is none. */
export function parseShard(text: string): Shard | undefined {
  const [, index = '', count = ''] = /^(\d{1,4})\/(\d{1,4})$/.exec(text) ?? []
  const shard = { index: Number(index), count: Number(count) }
  return index !== '' && shard.index < shard.count ? shard : undefined
}

export function isOfShard(uid: string, { index, count }: Shard): boolean {
  return createHash('sha256').update(uid).digest().readUInt32BE(0) % count === index
}

/** The lease that the processes of a shard contest. */
export function leaseOf(name: string, shard: Shard | undefined): string {
  return shard && shard.count > 1 ? `${name}-${shard.index}-of-${shard.count}` : name
}
