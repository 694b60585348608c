/**
 * Which pods a label selector means. Pure.
 */
interface Selector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined
  readonly matchExpressions?:
    | readonly { readonly key: string; readonly operator: string; readonly values?: readonly string[] | undefined }[]
    | undefined
}

/** An empty selector means none: that of a workload is never meant to be everything. */
export function selects(selector: unknown, labels: Readonly<Record<string, string>> = {}): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector as Selector
  if (Object.keys(matchLabels).length + matchExpressions.length === 0) return false
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = labels[key]
      switch (operator) {
        case 'In':
          return value !== undefined && values.includes(value)
        case 'NotIn':
          return value === undefined || !values.includes(value)
        case 'Exists':
          return value !== undefined
        case 'DoesNotExist':
          return value === undefined
        default:
          return false
      }
    })
  )
}
