/**
 * Addresses to listen on, as `HOST:PORT`. Pure.
 */
export interface Address {
  /** Empty: every address of the machine. */
  readonly host: string
  /** 0: the system chooses. */
  readonly port: number
}

/** @param option how the user calls it, for the message */
export function parseAddress(text: string, option: string): Address {
  const match = /^(?:\[([\da-fA-F:.]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (!match || port > 65_535) {
    throw new TypeError(`${option} is "${text}"; it must be HOST:PORT, as 127.0.0.1:7443, [::1]:7443 or :7443`)
  }
  return { host: match[1] ?? match[2] ?? '', port }
}

export const formatAddress = ({ host, port }: Address) => `${host.includes(':') ? `[${host}]` : host}:${port}`

/** Whether only this machine can reach it. A name other than localhost may mean anything. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase()
  return bare === 'localhost' || bare === '::1' || /^(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(bare)
}
