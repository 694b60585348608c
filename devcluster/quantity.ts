/**
 * Amounts of resources as Kubernetes writes them: `500m`, `1Gi`. Pure.
 */
const binary = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
const decimal = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']
const form = /^([+-]?)(\d*)(?:\.(\d*))?(?:(Ki|Mi|Gi|Ti|Pi|Ei)|([numkMGTPE]?)|[eE]([+-]?\d+))$/

/** In billionths; undefined for what is no quantity. What is smaller than a billionth is rounded up. */
function billionths(text: string): { value: bigint; base: 2 | 10; exponent: boolean } | undefined {
  const [, sign, whole = '', fraction = '', two, ten, power] = form.exec(text) ?? []
  if (sign === undefined || whole + fraction === '') return undefined
  const scale = two
    ? 1024n ** BigInt(binary.indexOf(two)) * 1_000_000_000n
    : 10n ** BigInt(Math.max(0, power === undefined ? decimal.indexOf(ten ?? '') * 3 : Number(power) + 9))
  const digits = BigInt(whole + fraction) * scale
  const divisor = 10n ** BigInt(fraction.length + (power !== undefined && Number(power) < -9 ? -9 - Number(power) : 0))
  const value = (digits + divisor - 1n) / divisor
  return { value: sign === '-' ? -value : value, base: two ? 2 : 10, exponent: power !== undefined }
}

/** The form that a server keeps it in: `0.5` is `500m`, `1024Mi` is `1Gi`. What is no quantity stays as it is. */
export function canonicalQuantity(given: string | number): string {
  const parsed = billionths(String(given))
  if (!parsed) return String(given)
  const { value, base, exponent } = parsed
  if (value === 0n) return '0'
  const unit = 1_000_000_000n
  // Binary units only from 1024 on, and for whole numbers.
  if (base === 2 && value % unit === 0n && abs(value / unit) >= 1024n) return binaryForm(value / unit)
  return decimalForm(value, exponent)
}

function binaryForm(value: bigint): string {
  let rest = value
  let at = 0
  while (rest % 1024n === 0n && at < binary.length - 1) {
    rest /= 1024n
    at++
  }
  return `${rest}${binary[at]}`
}

function decimalForm(value: bigint, exponent: boolean): string {
  let rest = value
  let at = 0
  while (rest % 1000n === 0n && at < decimal.length - 1) {
    rest /= 1000n
    at++
  }
  if (!exponent) return `${rest}${decimal[at]}`
  const power = (at - 3) * 3
  return power === 0 ? `${rest}` : `${rest}e${power}`
}

function abs(value: bigint): bigint {
  return value < 0n ? -value : value
}

/** Its value in whole units of `divisor`, rounded up, as the downward API gives it; undefined for what is no quantity. */
export function amountOf(quantity: string, divisor = '1'): string | undefined {
  const amount = billionths(quantity)?.value
  const unit = billionths(divisor === '0' ? '1' : divisor)?.value
  if (amount === undefined || unit === undefined || unit === 0n) return undefined
  const whole = amount / unit
  return String(whole * unit < amount ? whole + 1n : whole)
}

/** Below 0 where `a` is less than `b`; what is no quantity is 0. */
export function compareQuantity(a: string | number, b: string | number): number {
  const [one, other] = [a, b].map(given => billionths(String(given))?.value ?? 0n) as [bigint, bigint]
  return one < other ? -1 : one > other ? 1 : 0
}
