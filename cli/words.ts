/**
 * One name in the spellings that files, code and clusters have for it. Pure.
 */

/** `ConfigMap`, `HTTPRoute` and `my thing` as `config-map`, `http-route` and `my-thing`. */
export function kebab(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1-$2')
    .replace(/[^A-Za-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .toLowerCase()
}

export function pascal(name: string): string {
  return kebab(name).replace(/(^|-)([a-z0-9])/g, (_, __, letter: string) => letter.toUpperCase())
}

export function camel(name: string): string {
  const whole = pascal(name)
  return whole.charAt(0).toLowerCase() + whole.slice(1)
}
