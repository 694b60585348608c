/**
 * Waiting for what is expected, not for ever.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from '../ending.ts'

type Found<T> = Exclude<T, false | undefined | null>

/** Looks until it is found, or fails with what was expected. @param timeout in milliseconds */
export async function until<T>(expected: string, look: () => T | Promise<T>, timeout = 30_000): Promise<Found<T>> {
  for (const began = performance.now(); ; await pause(20)) {
    const found = await look()
    if (found) return found as Found<T>
    if (performance.now() - began > timeout) throw new Failure(`waited ${timeout / 1000} s for ${expected}`)
  }
}
