/** Named formats: `format.dns1123Label().validate(self)` answers what is wrong, or nothing. */
import type { Environment } from '@marcbachmann/cel-js'
import { fitsFormat } from '../formats.ts'
import { dns1035Label, dns1123Label, dns1123Subdomain, labelValue, qualifiedName } from '../names.ts'

class Format {
  readonly validate: (value: string) => string[]
  constructor(validate: (value: string) => string[]) {
    this.validate = validate
  }
}

/** A prefix may end as no name does. */
const prefix = (rule: (value: string) => string[]) => (value: string) => rule(value.replace(/-$/, 'a'))
const named = (format: string, message: string) => (value: string) => (fitsFormat(format, value) ? [] : [message])

const formats: Record<string, (value: string) => string[]> = {
  dns1123Label,
  dns1123Subdomain,
  dns1035Label,
  dns1123LabelPrefix: prefix(dns1123Label),
  dns1123SubdomainPrefix: prefix(dns1123Subdomain),
  dns1035LabelPrefix: prefix(dns1035Label),
  qualifiedName,
  labelValue,
  uri: named('uri', 'invalid URI'),
  uuid: named('uuid', 'does not match the UUID format'),
  byte: named('byte', 'invalid base64'),
  date: named('date', 'invalid date'),
  datetime: named('date-time', 'invalid datetime'),
}

export function registerFormats(environment: Environment, optional: (value: unknown) => unknown): void {
  const sync = { async: false }
  class FormatNamespace {}
  environment.registerType('kubernetes.NamedFormat', Format).registerType('FormatNamespace', FormatNamespace)
  environment.registerConstant('format', 'FormatNamespace', new FormatNamespace())
  for (const [name, rule] of Object.entries(formats)) {
    const one = new Format(rule)
    environment.registerFunction(`FormatNamespace.${name}(): kubernetes.NamedFormat`, () => one, sync)
  }
  environment.registerFunction(
    'FormatNamespace.named(string): optional<kubernetes.NamedFormat>',
    (_: unknown, name: string) => {
      const rule = Object.hasOwn(formats, name) ? formats[name] : undefined
      return optional(rule && new Format(rule))
    },
    sync,
  )
  environment.registerFunction(
    'kubernetes.NamedFormat.validate(string): optional<list<string>>',
    ({ validate }: Format, value: string) => {
      const wrong = validate(value)
      return optional(wrong.length > 0 ? wrong : undefined)
    },
    sync,
  )
}
