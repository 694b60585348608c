/**
 * Words of a command line or an environment that mean something else here than in a container: addresses to listen at and, where processes
 * cannot have a file tree of their own, paths. Pure.
 */
export interface Addresses {
  readonly ip: string
  /** The real port of each port that the pod declares. */
  readonly ports: ReadonlyMap<number, number>
}

/**
 * `0.0.0.0:P`, `[::]:P`, `127.0.0.1:P`, `localhost:P`, and `:P` as a whole word, become the pod's own address, for ports that the pod declares: all
 * pods share the machine's network, and have an address each. Where ports are mapped, a word that is nothing but such a port changes too.
 */
export function readdressed(word: string, { ip, ports }: Addresses): string {
  const anywhere = word.replace(
    /(?<![\w.:[-])(0\.0\.0\.0|127\.0\.0\.1|localhost|\[::1?\]):(\d+)(?!\d)/g,
    (whole, _host, port) => {
      const real = ports.get(Number(port))
      return real === undefined ? whole : `${ip}:${real}`
    },
  )
  return anywhere.replace(/^((?:--?[\w.-]+=)?)(:?)(\d+)$/, (whole, flag: string, colon: string, port: string) => {
    const real = ports.get(Number(port))
    if (real === undefined) return whole
    if (colon) return `${flag}${ip}:${real}`
    return `${flag}${real}`
  })
}

/** Each of `paths`, and what is under it, is found under `root`: at the beginning of a word, or of a part of it. */
export function relocated(word: string, root: string, paths: readonly string[]): string {
  if (paths.length === 0) return word
  const any = [...paths]
    .sort((a, b) => b.length - a.length)
    .map(path => path.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'))
    .join('|')
  return word.replace(new RegExp(`(?<=^|[\\s=:,;'"(<>|&@])(${any})(?=$|[/\\s=:,;'")<>|&])`, 'g'), path => root + path)
}
