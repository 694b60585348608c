/**
 * Amounts of a resource, as `250m`, `1.5`, `64Mi`. Pure.
 */
const units: Readonly<Record<string, number>> = {
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
}

/** As a number, for comparing; undefined for what is none, or is not positive. */
export function amountOf(text: string): number | undefined {
  const [, number = '', unit = ''] = /^(\d{1,15}(?:\.\d{1,3})?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/.exec(text) ?? []
  const amount = Number(number) * (units[unit] ?? Number.NaN)
  return amount > 0 ? amount : undefined
}
