/**
 * `$(VAR)` in commands, arguments and values: replaced where there is such a variable, left as it stands where there is none; `$$(VAR)` is
 * `$(VAR)`. Pure.
 */
export function expand(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(/\$\$|\$\(([^)]*)\)/g, (whole, name?: string) => {
    if (whole === '$$') return '$'
    return name !== undefined && Object.hasOwn(variables, name) ? (variables[name] ?? '') : whole
  })
}
