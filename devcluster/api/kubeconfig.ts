/**
 * The file that kubectl and other clients find a cluster by. JSON is YAML.
 */
export interface Access {
  readonly url: string
  /** PEM, as are the others. */
  readonly ca: string
  readonly name: string
  readonly cert: string
  readonly key: string
}

const base64 = (text: string) => Buffer.from(text).toString('base64')

export function kubeconfigText({ url, ca, name, cert, key }: Access): string {
  const cluster = 'devcluster'
  return `${JSON.stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': cluster,
      clusters: [{ name: cluster, cluster: { server: url, 'certificate-authority-data': base64(ca) } }],
      users: [{ name, user: { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) } }],
      contexts: [{ name: cluster, context: { cluster, user: name } }],
    },
    undefined,
    2,
  )}\n`
}
