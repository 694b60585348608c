/**
 * Formats of strings: which of them the server holds a value against, and how. It ignores those it does not know.
 */
import { isIP, isIPv6 } from 'node:net'
import { dns1123Label, dns1123Subdomain } from './names.ts'

const uuid = (version: string, variant: string) =>
  new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`, 'i')
const matches = (pattern: RegExp) => (value: string) => pattern.test(value)

const checks: Record<string, (value: string) => boolean> = {
  bsonobjectid: matches(/^[0-9a-f]{24}$/i),
  uri: isRequestUri,
  email: isEmail,
  hostname: isHostname,
  ipv4: value => isIP(unpadded(value)) === 4 || /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(value),
  ipv6: value => isIPv6(value) && !value.includes('%'),
  cidr: isCidr,
  mac: matches(
    /^(?:[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}(?:[0-9a-f]{2}\1){0,2}[0-9a-f]{2}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2,3})$/i,
  ),
  uuid: matches(uuid('[0-9a-f]', '[0-9a-f]')),
  uuid3: matches(uuid('3', '[0-9a-f]')),
  uuid4: matches(uuid('4', '[89ab]')),
  uuid5: matches(uuid('5', '[89ab]')),
  isbn: value => isIsbn10(value) || isIsbn13(value),
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  creditcard: isCreditCard,
  ssn: matches(/^\d{3}[- ]?\d{2}[- ]\d{4}$/),
  hexcolor: matches(/^#?(?:[0-9a-f]{3}|[0-9a-f]{6})$/i),
  rgbcolor: value => {
    const match = /^rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$/.exec(value)
    return match?.slice(1).every(part => Number(part) <= 255 && !/^0\d/.test(part)) ?? false
  },
  byte: matches(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/),
  password: () => true,
  date: value => /^\d{4}-\d{2}-\d{2}$/.test(value) && isDay(value),
  duration: isDuration,
  datetime: isDateTime,
  k8sshortname: value => dns1123Label(value).length === 0,
  k8slongname: value => dns1123Subdomain(value).length === 0,
}

const ofType: Record<string, readonly string[]> = {
  integer: ['int32', 'int64'],
  number: ['float', 'double'],
  string: Object.keys(checks),
}

/** The format, where the server knows it for the type; otherwise it is as if there were none. */
export function formatOf(type: string | undefined, format: string | undefined): string {
  return type && format && ofType[type]?.includes(format.replaceAll('-', '')) ? format : ''
}

export const fitsFormat = (format: string, value: string): boolean =>
  checks[format.replaceAll('-', '')]?.(value) ?? true

function isDateTime(value: string): boolean {
  const match = /^(\d{4}-\d{2}-\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/i.exec(value)
  if (!match) return false
  const [, day = '', hours, minutes, seconds] = match
  return isDay(day) && Number(hours) < 24 && Number(minutes) < 60 && Number(seconds) < 60
}

function isDay(value: string): boolean {
  const date = new Date(`${value}T00:00:00Z`)
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(value)
}

function isDuration(value: string): boolean {
  if (/^[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/.test(value)) return true
  const units =
    'ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?'
  return (
    new RegExp(`^(?:\\s*\\d+\\s*(?:${units})\\b)+\\s*$`, 'i').test(value) ||
    new RegExp(`^(?:\\d+(?:${units}))+$`, 'i').test(value)
  )
}

/** Zeros in front were once fine, and still are here. */
const unpadded = (value: string) => value.replace(/(^|\.)0+(?=\d)/g, '$1')

function isCidr(value: string): boolean {
  const [address = '', length = '', ...more] = value.split('/')
  if (more.length > 0 || !/^\d{1,3}$/.test(length)) return false
  const family = isIP(unpadded(address))
  return family === 4 ? Number(length) <= 32 : family === 6 && !address.includes('%') && Number(length) <= 128
}

/** An absolute URI, or an absolute path. */
function isRequestUri(value: string): boolean {
  if (value === '' || /\p{Cc}/u.test(value)) return false
  if (/%(?![0-9a-f]{2})/i.test(value)) return false
  if (value.startsWith('/') && !value.startsWith('//')) return true
  const match = /^([a-z][a-z0-9+.-]*):(\/\/([^/?#]*))?/i.exec(value)
  if (!match) return value === '*' || value.startsWith('//')
  const host = match[3]
  if (host === undefined) return true
  return /^(?:[^\s[\]<>"@]*@)?(?:\[[0-9a-f:.%]+\]|[^\s[\]<>":\\^`{|}]*)(?::\d*)?$/i.test(host)
}

/** One label with one dash at most, or several with a last one of letters. */
const host =
  /^(?:[a-z0-9\p{S}\p{L}](?:-?[a-z0-9\p{S}\p{L}]{0,62})?|(?:[a-z0-9\p{S}\p{L}](?:[a-z0-9\p{S}\p{L}-]{0,61}[a-z0-9\p{S}\p{L}])?\.)+[a-z\p{L}]{2,63})$/iu

function isHostname(value: string): boolean {
  return (
    host.test(value) &&
    value.split('.').every(label => Buffer.byteLength(label) <= 63) &&
    Buffer.byteLength(value) <= 255
  )
}

function isEmail(value: string): boolean {
  const address = /^[^<>]*<([^<>]+)>\s*$/.exec(value)?.[1] ?? value.trim()
  return /^(?:[^\s@<>()[\]\\,;:".]+(?:\.[^\s@<>()[\]\\,;:".]+)*|"[^"]+")@[^\s@<>()[\]\\,;:".]+(?:\.[^\s@<>()[\]\\,;:".]+)*$/.test(
    address,
  )
}

const digits = (value: string) => value.replace(/[\s-]/g, '')

function isIsbn10(value: string): boolean {
  const number = digits(value)
  if (!/^\d{9}[\dX]$/.test(number)) return false
  return (
    [...number].reduce((sum, digit, index) => sum + (10 - index) * (digit === 'X' ? 10 : Number(digit)), 0) % 11 === 0
  )
}

function isIsbn13(value: string): boolean {
  const number = digits(value)
  if (!/^\d{13}$/.test(number)) return false
  return [...number].reduce((sum, digit, index) => sum + Number(digit) * (index % 2 ? 3 : 1), 0) % 10 === 0
}

function isCreditCard(value: string): boolean {
  const number = value.replace(/\D/g, '')
  if (
    !/^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|(?:222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11}|6[27]\d{14})$/.test(
      number,
    )
  )
    return false
  let sum = 0
  for (const [index, digit] of [...number].reverse().entries()) {
    const doubled = Number(digit) * (index % 2 ? 2 : 1)
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}
