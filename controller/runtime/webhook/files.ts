/**
 * The certificate of the webhooks from files that somebody else keeps, such as cert-manager: `tls.crt` and `tls.key` of a folder.
 *
 * Guarantees: a change is taken up within `every`; half of one (the new certificate with the old key) is not, and what was in use stays in use.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Pair } from '../../../shared/certificate.ts'
import { type Clock, sleep } from '../../../shared/clock.ts'
import { messageOf } from '../../../shared/errors.ts'
import type { Logger } from '../../../shared/log.ts'

export interface FilesOptions {
  readonly dir: string
  readonly clock: Clock
  readonly log: Logger
  /** Milliseconds between two looks. A volume's files are replaced by a link, which no watch of a file sees. Default 10,000. */
  readonly every?: number | undefined
  readonly onCertificate: (pair: Pair & { readonly until: number }) => void
  /** Told what is wrong, or that nothing is. */
  readonly onTrouble: (trouble: string | undefined) => void
}

/** Goes on until the signal is aborted, then resolves. */
export async function followFiles(options: FilesOptions, signal: AbortSignal): Promise<void> {
  const { dir, clock, log, every = 10_000, onCertificate, onTrouble } = options
  let [used, told]: [string, string | undefined] = ['', undefined]
  while (!signal.aborted) {
    let trouble: string | undefined
    try {
      const [cert, key] = await Promise.all(['tls.crt', 'tls.key'].map(file => readFile(join(dir, file), 'utf8')))
      const pair = checked(cert ?? '', key ?? '')
      if (pair.cert + pair.key !== used) {
        onCertificate(pair)
        used = pair.cert + pair.key
        log.info({ dir, until: new Date(pair.until).toISOString() }, 'the certificate of the webhooks was read')
      }
    } catch (error) {
      trouble = `the certificate in ${dir} cannot be used: ${messageOf(error)}`
      if (trouble !== told) log.error({ err: error }, trouble)
    }
    told = trouble
    onTrouble(trouble)
    await sleep(clock, every, signal).catch(() => undefined)
  }
}

function checked(cert: string, key: string): Pair & { until: number } {
  const leaf = new X509Certificate(cert)
  if (!leaf.checkPrivateKey(createPrivateKey(key))) throw new Error('tls.key is not the key of tls.crt')
  return { cert, key, until: Date.parse(leaf.validTo) }
}
