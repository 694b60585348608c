/**
 * What may be a name, a label, a key: each rule answers what is wrong with a value, in the server's words, or nothing.
 */
const quoted = (examples: readonly string[]) => examples.map(example => `'${example}'`).join(',  or ')
const regex = (message: string, pattern: string, ...examples: string[]) =>
  `${message} (e.g. ${quoted(examples)}, regex used for validation is '${pattern}')`

const tooLong = (limit: number, unit: string) => `must be no more than ${limit} ${unit}`
const bytes = (text: string) => Buffer.byteLength(text)

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const subdomain = `${label}(\\.${label})*`
const isLabel = new RegExp(`^${label}$`)
const isSubdomain = new RegExp(`^${subdomain}$`)
const isLabel1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/
const nameText = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const isName = new RegExp(`^${nameText}$`)
const valueText = `(${nameText})?`
const isValue = new RegExp(`^${valueText}$`)

const subdomainMessage = regex(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  subdomain,
  'example.com',
)
const labelMessage = regex(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  label,
  'my-name',
  '123-abc',
)
const label1035Message = regex(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  '[a-z]([-a-z0-9]*[a-z0-9])?',
  'my-name',
  'abc-123',
)
const nameMessage = (subject: string) =>
  regex(
    `${subject} must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character`,
    nameText,
    'MyName',
    'my.name',
    '123-abc',
  )
const valueMessage = regex(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  valueText,
  'MyValue',
  'my_value',
  '12345',
)

export const dns1123Subdomain = (value: string): string[] => [
  ...(bytes(value) > 253 ? [tooLong(253, 'characters')] : []),
  ...(isSubdomain.test(value) ? [] : [subdomainMessage]),
]

export const dns1123Label = (value: string): string[] => [
  ...(bytes(value) > 63 ? [tooLong(63, 'characters')] : []),
  ...(isLabel.test(value) ? [] : [isSubdomain.test(value) ? 'must not contain dots' : labelMessage]),
]

export const dns1035Label = (value: string): string[] => [
  ...(bytes(value) > 63 ? [tooLong(63, 'characters')] : []),
  ...(isLabel1035.test(value) ? [] : [label1035Message]),
]

/** A key of labels and annotations, the name of a finalizer: `example.com/name`. */
export function qualifiedName(value: string): string[] {
  const parts = value.split('/')
  if (parts.length > 2) {
    return [
      `${nameMessage('a valid label key')} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  }
  const name = parts.at(-1) ?? ''
  const wrong: string[] = []
  if (parts.length === 2) {
    const prefix = parts[0] ?? ''
    if (prefix === '') wrong.push('prefix part must be non-empty')
    else wrong.push(...dns1123Subdomain(prefix).map(message => `prefix part ${message}`))
  }
  if (name === '') wrong.push('name part must be non-empty')
  else if (bytes(name) > 63) wrong.push(`name part ${tooLong(63, 'bytes')}`)
  if (!isName.test(name)) wrong.push(nameMessage('name part'))
  return wrong
}

export const labelValue = (value: string): string[] => [
  ...(bytes(value) > 63 ? [tooLong(63, 'bytes')] : []),
  ...(isValue.test(value) ? [] : [valueMessage]),
]

/** Any name that a path can hold. */
export function pathSegment(value: string): string[] {
  if (value === '.' || value === '..') return [`may not be '${value}'`]
  return ['/', '%'].filter(mark => value.includes(mark)).map(mark => `may not contain '${mark}'`)
}

const portText = '[-a-z0-9]+'
const isPort = new RegExp(`^${portText}$`)

/** The name of a port. */
export const portName = (value: string): string[] => [
  ...(value.length > 15 ? [tooLong(15, 'characters')] : []),
  ...(isPort.test(value) ? [] : ['must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)']),
  ...(/[a-z]/.test(value) ? [] : ['must contain at least one letter (a-z)']),
  ...(value.includes('--') ? ['must not contain consecutive hyphens'] : []),
  ...(/^-|-$/.test(value) ? ['must not begin or end with a hyphen'] : []),
]

const keyMessage = regex(
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
  '[-._a-zA-Z0-9]+',
  'key.name',
  'KEY_NAME',
  'key-name',
)

/** A key of a config map or a secret. */
export const configKey = (value: string): string[] => (/^[-._a-zA-Z0-9]+$/.test(value) ? [] : [keyMessage])
