/**
 * Which version this is. The bundle has it inside; in a clone it is read from package.json.
 */
declare const SHIPMATE_VERSION: string | undefined

export function version(): string {
  if (typeof SHIPMATE_VERSION === 'string') return SHIPMATE_VERSION
  const { readFileSync } = process.getBuiltinModule('node:fs')
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version
}
