/** Random secrets, and texts that are full of them and of their beginnings. */
import fc from 'fast-check'

export const seed = Number(process.env.SHIPMATE_SEED ?? 1)

const letters = fc.array(fc.constantFrom(0x61, 0x62, 0x0a), { maxLength: 6 }).map(bytes => Buffer.from(bytes))
const anything = fc.uint8Array({ maxLength: 40 }).map(bytes => Buffer.from(bytes))

export const secretsAndChunks = fc
  .array(fc.oneof({ weight: 4, arbitrary: letters }, anything), { maxLength: 5 })
  .chain(secrets => {
    const pieces = secrets.map(secret =>
      fc.tuple(fc.nat(secret.length), fc.nat(secret.length)).map(([from, to]) => secret.subarray(from, to)),
    )
    const chunk = fc.array(fc.oneof(letters, anything, fc.constantFrom(...secrets, Buffer.alloc(0)), ...pieces), {
      maxLength: 6,
    })
    return fc.record({
      secrets: fc.constant(secrets),
      chunks: fc.array(
        chunk.map(parts => Buffer.concat(parts)),
        { maxLength: 8 },
      ),
    })
  })

const key = fc.constantFrom('progress', 'result', 'other', 'progres', 'progress ', '', '"', 'ä')
const value = fc.letrec(tie => ({
  any: fc.oneof(
    { depthSize: 'small' },
    fc.jsonValue({ maxDepth: 2 }),
    tie('object'),
    fc.array(tie('any'), { maxLength: 3 }),
  ),
  object: fc.dictionary(key, tie('any'), { maxKeys: 3 }),
})).object
const json = value.chain(content => fc.constantFrom(JSON.stringify(content), JSON.stringify(content, null, ' ')))

/** Lines that are JSON objects, nearly so, or not at all. */
export const lines = fc.oneof(
  json,
  fc.tuple(json, fc.nat(), fc.string({ maxLength: 2 })).map(([text, at, other]) => {
    const cut = text.length === 0 ? 0 : at % text.length
    return text.slice(0, cut) + other + text.slice(cut + 1)
  }),
  fc.tuple(json, fc.nat()).map(([text, at]) => text.slice(0, at % (text.length + 1))),
  fc.array(fc.constantFrom(...'{}[]":,0-1.eE+tru fals\\nu\t')).map(parts => parts.join('')),
  fc.constantFrom(
    '{"a":01}',
    '{"a":1.}',
    '{"a":-}',
    '{"a":1e}',
    '{"a":"\\u12G4"}',
    '{"a":"\\x"}',
    '{"a":1,}',
    '{,}',
    '{}{}',
    '[{"progress":1}]',
  ),
  fc.nat(30_000).map(depth => `{"progress":${'['.repeat(depth)}${']'.repeat(depth)}}`),
)
