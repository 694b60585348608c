/**
 * The informers of a process, one a kind, shared by all who need it.
 *
 * Guarantee: however many ask for a kind, it is watched once.
 */
import type { Client } from './client.ts'
import { Informer, type InformerOptions } from './informer.ts'
import { type Kind, kindKey } from './kind.ts'

/** What holds for every informer of a cache; `for` sets a single kind's own, which win. */
export interface CacheOptions extends Omit<InformerOptions<object>, 'indices' | 'transform' | 'keepManager'> {}

export class Cache {
  readonly #client: Client
  readonly #defaults: CacheOptions
  readonly #informers = new Map<string, Informer<object>>()
  readonly #own = new Map<string, InformerOptions<object>>()
  #signal: AbortSignal | undefined
  readonly #runs: Promise<void>[] = []

  constructor(client: Client, defaults: CacheOptions = {}) {
    this.#client = client
    this.#defaults = defaults
  }

  /** Narrows what is kept of a kind: namespaces, selectors, transform. Before its informer is first asked for. */
  for<T extends object>(kind: Kind<T>, options: InformerOptions<T>): this {
    if (this.#informers.has(kindKey(kind)))
      throw new TypeError(`${kind.kind} is watched already: configure it before a controller asks for it`)
    this.#own.set(kindKey(kind), options as InformerOptions<object>)
    return this
  }

  /** The informer of a kind; begins to watch it, once the cache runs. */
  informer<T extends object>(kind: Kind<T>): Informer<T> {
    const key = kindKey(kind)
    let informer = this.#informers.get(key) as Informer<T> | undefined
    if (!informer) {
      const onHealth = this.#defaults.onHealth
      informer = new Informer<T>(this.#client, kind, {
        ...this.#defaults,
        ...(this.#own.get(key) as unknown as InformerOptions<T> | undefined),
        ...(onHealth ? { onHealth } : {}),
      })
      this.#informers.set(key, informer as unknown as Informer<object>)
      if (this.#signal) this.#runs.push(informer.run(this.#signal))
    }
    return informer
  }

  /** The informer of a kind, if somebody has asked for one. */
  peek<T extends object>(kind: Kind<T>): Informer<T> | undefined {
    return this.#informers.get(kindKey(kind)) as Informer<T> | undefined
  }

  informers(): Iterable<Informer<object>> {
    return this.#informers.values()
  }

  /** Watches until the signal is aborted; resolves when all have stopped. */
  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal
    for (const informer of this.#informers.values()) this.#runs.push(informer.run(signal))
    await new Promise<void>(resolve => {
      if (signal.aborted) resolve()
      else signal.addEventListener('abort', () => resolve(), { once: true })
    })
    await Promise.all(this.#runs)
  }
}
