/**
 * Libraries that few operators use, loaded when the first does: until then they take neither memory nor time of its start.
 *
 * Loading them is one step, as whoever declares a template is told at once what is wrong with it. Types are imported as anywhere.
 */
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** Reads and writes YAML. */
export const yaml = (): typeof import('yaml') => require('yaml')

/** Reads rules in CEL. */
export const cel = (): typeof import('@marcbachmann/cel-js') => require('@marcbachmann/cel-js')

/** The template engine. */
export const liquid = (): typeof import('liquidjs') => require('liquidjs')
