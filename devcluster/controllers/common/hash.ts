/**
 * Short names for contents, in the letters that Kubernetes uses for generated names: no vowels, so no words. Pure.
 */
import { canonicalJson } from '../../../shared/canonical.ts'

const letters = 'bcdfghjklmnpqrstvwxz2456789'

/** FNV-1a, 32 bits. */
function fnv(text: string): number {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0
  return hash
}

/** The same for the same content, whatever the order of its keys. @param collisions how many other contents have the same hash */
export function shortHash(content: unknown, collisions = 0): string {
  const text = canonicalJson(content) + (collisions > 0 ? String(collisions) : '')
  return [...String(fnv(text))].map(digit => letters[digit.charCodeAt(0) % letters.length]).join('')
}
