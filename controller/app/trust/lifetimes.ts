/**
 * How long certificates and keys hold, in milliseconds.
 */
export interface Lifetimes {
  /** Of an authority. Default a year. */
  readonly authority: number
  /** Of a certificate. Default 30 days. */
  readonly certificate: number
  /** Of a key that signs lifecycles. Default a year. */
  readonly signingKey: number
  /** The longest that a write may take until all pods and controllers have it. Default an hour: the kubelet looks every minute, unless it is cut off. */
  readonly propagation: number
  /** By how much clocks may differ: everything holds from so much earlier on. Default 5 minutes. */
  readonly skew: number
}

const day = 86_400_000

export const usualLifetimes: Lifetimes = {
  authority: 365 * day,
  certificate: 30 * day,
  signingKey: 365 * day,
  propagation: 3_600_000,
  skew: 300_000,
}
