/**
 * Label selectors as objects carry them, evaluated. Pure.
 */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined
  readonly matchExpressions?:
    | readonly { readonly key: string; readonly operator: string; readonly values?: readonly string[] | undefined }[]
    | undefined
}

/** An empty selector selects everything, an absent one nothing. */
export function selects(
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  if (!selector) return false
  const own = labels ?? {}
  return (
    Object.entries(selector.matchLabels ?? {}).every(([name, value]) => own[name] === value) &&
    (selector.matchExpressions ?? []).every(one => holds(one.operator, one.values ?? [], own[one.key]))
  )
}

/** Whether it says nothing. */
export function isEmpty({ matchLabels, matchExpressions }: LabelSelector): boolean {
  return Object.keys(matchLabels ?? {}).length + (matchExpressions ?? []).length === 0
}

function holds(operator: string, values: readonly string[], value: string | undefined): boolean {
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
}
