/**
 * What the API's own side of trust is made of: the server's certificate and key, the authorities that sign clients, the token. Pure.
 *
 * Guarantee: what loads can be served with: the key belongs to the certificate, every authority is a certificate, the token is not empty.
 */
export interface ServerCertificate {
  readonly cert: Buffer
  readonly key: Buffer
  /** Who signs client certificates; two while they are being replaced. */
  readonly ca?: string[]
}

/** @param contents tls.crt, tls.key and, for `mtls`, ca.crt */
export function loadCertificate([cert, key, ca]: Buffer[]): ServerCertificate {
  if (!cert || !key) throw new Error('tls.crt and tls.key are needed')
  const { X509Certificate, createPrivateKey } = process.getBuiltinModule('node:crypto')
  const certificate = attempt('tls.crt', () => new X509Certificate(cert))
  const secret = attempt('tls.key', () => createPrivateKey(key))
  if (!certificate.checkPrivateKey(secret)) throw new Error('tls.key is not the key of tls.crt')
  if (!ca) return { cert, key }
  const authorities = ca.toString('latin1').match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  if (authorities.length === 0) throw new Error('ca.crt has no certificate')
  for (const authority of authorities) attempt('ca.crt', () => new X509Certificate(authority))
  return { cert, key, ca: authorities }
}

/** The SHA-256 of the token in the file; space around it does not count. */
export function loadToken([content]: Buffer[]): Buffer {
  const token = content?.toString('utf8').trim() ?? ''
  if (token === '') throw new Error('the token file is empty')
  if (/\s/.test(token)) throw new Error('the token has space in it; it must be one word')
  return process.getBuiltinModule('node:crypto').createHash('sha256').update(token).digest()
}

function attempt<Value>(file: string, read: () => Value): Value {
  try {
    return read()
  } catch {
    throw new Error(`${file} is not PEM, or is not complete`)
  }
}
