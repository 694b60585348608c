// The system's monotonic clock, which is the same for all processes of a machine.

/** Milliseconds, with fractions. */
export const monotonic = (): number => Number(process.hrtime.bigint()) / 1e6
