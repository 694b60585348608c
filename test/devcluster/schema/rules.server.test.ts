/**
 * The same rules in CEL to the real server and to our functions: what they say of values, and which of them a definition may have.
 */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Schema, ValidationRule } from '../../../devcluster/api/schema/schema.ts'
import { ourRefusal, ourVerdict, realServer, rootOf, type Verdict } from './real.ts'

const file = inject('kubeconfig')

const text: Schema = { type: 'string', maxLength: 40 }
const fields: Record<string, Schema> = {
  i: { type: 'integer' },
  n: { type: 'number' },
  s: text,
  l: { type: 'array', maxItems: 5, items: { type: 'string', maxLength: 10 } },
  li: { type: 'array', maxItems: 5, items: { type: 'integer' } },
  m: { type: 'object', maxProperties: 5, additionalProperties: { type: 'string', maxLength: 10 } },
  ios: { 'x-kubernetes-int-or-string': true },
  nul: { type: 'string', maxLength: 10, nullable: true },
  d: { type: 'string', format: 'date-time' },
  dur: { type: 'string', format: 'duration' },
  by: { type: 'string', format: 'byte', maxLength: 20 },
  o: { type: 'object', properties: { a: { type: 'string', maxLength: 10 }, z: { type: 'integer' } } },
  set: { type: 'array', maxItems: 4, 'x-kubernetes-list-type': 'set', items: { type: 'string', maxLength: 5 } },
  ol: {
    type: 'array',
    maxItems: 5,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['k'],
    items: {
      type: 'object',
      required: ['k'],
      properties: { k: { type: 'string', maxLength: 5 }, v: { type: 'integer' } },
    },
  },
  namespace: text,
  'a-b': text,
  'x.y': text,
  b__c: text,
  emb: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
  any: { 'x-kubernetes-preserve-unknown-fields': true },
}
const full = {
  i: 3,
  n: 2,
  s: 'hello-World',
  l: ['a', 'b'],
  li: [1, 2, 3],
  m: { a: '2', b: '1' },
  ios: 1,
  nul: null,
  d: '2020-01-02T03:04:05Z',
  dur: '1h30m',
  by: 'aGk=',
  o: { a: 'x' },
  set: ['a', 'b'],
  ol: [{ k: 'x', v: 1 }, { k: 'y' }],
  namespace: 'n',
  'a-b': 'dash',
  'x.y': 'dot',
  b__c: 'under',
  emb: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, zzz: 1 },
}

const withRules = (...rules: ValidationRule[]): Schema => ({
  type: 'object',
  properties: fields,
  'x-kubernetes-validations': rules,
})

/** Each is asked of `full`; some say yes, some no, some cannot be answered. */
const expressions = [
  'self.i > 3',
  'self.n == 2.0',
  'self.o.z < 2',
  'has(self.o.z)',
  '!has(self.o.z) && self.o.a == "x"',
  '!has(self.nul)',
  'self.i / 0 > 1',
  'self.i % 0 > 1',
  'self.li[5] == 1',
  "self.m['q'] == 'x'",
  "'q' in self.m",
  'self.i * 9223372036854775807 > 0',
  'int(self.s) > 1',
  'self.ios + 1 == 2',
  "self.ios + 'x' == 'y'",
  'type(self.ios) == int',
  "timestamp(self.s) > timestamp('2020-01-01T00:00:00Z')",
  "self.d < timestamp('2020-01-01T00:00:00Z')",
  "string(self.d) == '2020-01-02T03:04:05Z' && self.d.getFullYear() == 2020",
  "self.dur > duration('2h')",
  "self.by == b'hi'",
  "self.set == ['b', 'a']",
  "self.l == ['b', 'a']",
  "self.m == {'b': '1', 'a': '2'}",
  'self.l.all(x, x in self.set)',
  "self.l.exists(x, x == 'z')",
  "self.l.exists_one(x, x == 'a')",
  "self.m.all(k, self.m[k] != '1')",
  "self.l.map(x, x + '!') == ['a!', 'b!']",
  "self.l.filter(x, x > 'a').size() == 2",
  'self.ol.all(x, has(x.v))',
  "self.ol.exists(x, x.k == 'x' && x.v == 1)",
  'self.li.sum() == 6 && self.li.min() == 1 && self.li.max() == 3 && self.li.isSorted()',
  'self.li.indexOf(2) == 1 && self.li.lastIndexOf(9) == -1',
  "self.s.matches('(?i)^HELLO-[[:alpha:]]+$')",
  'self.s.matches(self.s + "(")',
  "self.s.find('[A-Z]\\\\w+') == 'World' && self.s.findAll('l') == ['l', 'l', 'l']",
  "self.s.lowerAscii().contains('world') && self.s.split('-').size() == 2 && self.s.replace('l', 'L', 1) == 'heLlo-World'",
  "self.s.substring(6) == 'World' && self.s.indexOf('o') == 4 && self.s.charAt(0) == 'h'",
  "'%s is %d' .format([self.s, self.i]) == 'hello-World is 3'",
  "self.l.join(',') == 'a,b'",
  "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('500m').add(quantity('0.5')).asInteger() == 1",
  "quantity('1Ki').compareTo(quantity('1024')) == 0 && !isQuantity('x') && quantity('50k') == quantity('50000')",
  'quantity(self.s).isInteger()',
  "quantity('1000m').isInteger() || quantity('1.0').isInteger() || quantity('99999999999999999999').isInteger()",
  "quantity('1.5k').isInteger() && quantity('1').add(1).asInteger() == 2 && quantity('1.50').asApproximateFloat() == 1.5",
  "ip('10.0.0.1').family() == 4 && ip('::1').isLoopback() && !isIP('x')",
  "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsCIDR('11.0.0.0/9')",
  "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.0.0.0/8').prefixLength() == 8",
  "url('https://a.b:80/p?x=1').getHost() == 'a.b:80' && url('https://a.b:80/').getPort() == '80' && !isURL('x')",
  "url('https://a.b:80/p?x=1').getQuery()['x'] == ['1']",
  "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('1.0.0-rc.1') && !isSemver('v1')",
  "sets.contains(self.l, ['a']) && sets.equivalent(self.l, self.set) && !sets.intersects(self.l, ['q'])",
  "!format.dns1123Label().validate('a-b').hasValue()",
  "self.__namespace__ == 'n' && self.a__dash__b == 'dash' && self.x__dot__y == 'dot' && self.b__underscores__c == 'under'",
  "self.emb.kind == 'Pod' && self.emb.metadata.name == 'p'",
  'self.?i.orValue(1) == 3 && self.o.?z.orValue(7) == 7',
  'optional.of(1).hasValue()',
  'self.i > 1.5',
  'self.o == self.o && self.ol == self.ol',
  'true || self.li[9] == 1',
  'self.li[9] == 1 || true',
  'size(self.s) == 11 && self.s.size() == 11 && size(self.m) == 2',
  "self.s.startsWith('hello') ? self.i == 4 : true",
]

describe.skipIf(!file)('rules in CEL, with a real server', () => {
  let real: ReturnType<typeof realServer>
  beforeAll(() => {
    real = realServer(file)
  })
  afterAll(() => real.close())

  test('what they say of a value', async () => {
    const schema = withRules(...expressions.map(rule => ({ rule })))
    const kind = await real.define(schema)
    expect(ourVerdict(schema, full)).toEqual(await kind.create(full))
    // Where several parts of one rule cannot be answered, the server tells of the first, the library of the last.
    const anyKey = (verdict: Verdict) => ({
      ...verdict,
      causes: verdict.causes?.map(cause => cause.replace(/no such key: \w+/, 'no such key')).sort(),
    })
    expect(anyKey(ourVerdict(schema, {}))).toEqual(anyKey(await kind.create({})))
    expect(ourVerdict(schema, { i: 'x' })).toEqual(await kind.create({ i: 'x' }))
  })

  test('messages, reasons and the fields they point at', async () => {
    const schema = withRules(
      { rule: 'self.i > 4', message: ' too small ' },
      { rule: 'self.i > 5', messageExpression: "'got ' + self.s", reason: 'FieldValueForbidden', fieldPath: '.i' },
      { rule: 'self.i > 6', reason: 'FieldValueRequired', fieldPath: '.o.a' },
      { rule: 'self.i > 7', reason: 'FieldValueDuplicate' },
      { rule: 'self.i > 8', messageExpression: "''" },
      { rule: 'self.i > 9', message: 'm', messageExpression: "'a\\nb'" },
      { rule: 'self.i > 10', messageExpression: 'self.l[7]' },
      { rule: 'self.i > 11', reason: 'FieldValueInvalid', fieldPath: "['a-b']" },
      { rule: '\n self.i > 12\n && true', message: 'lines' },
      { rule: "self.s == '<&>'" },
    )
    const kind = await real.define(schema)
    expect(ourVerdict(schema, full)).toEqual(await kind.create(full))
  })

  test('on scalars, items and values', async () => {
    const schema = structuredClone(withRules())
    const rules = [{ rule: 'self != self' }]
    const { i, s, l, m, d, o, ol } = schema.properties as Record<string, Schema>
    for (const one of [i, s, l, m, d, o, ol, l?.items, ol?.items, m?.additionalProperties as Schema]) {
      if (one) one['x-kubernetes-validations'] = rules
    }
    const kind = await real.define(schema)
    expect(ourVerdict(schema, full)).toEqual(await kind.create(full))
  })

  test('on changes: what was, where it can be paired, and what has not changed', async () => {
    const schema = structuredClone(
      withRules(
        { rule: 'self.i >= oldSelf.i' },
        { rule: '!oldSelf.hasValue() || self.i != oldSelf.value().i', optionalOldSelf: true },
        { rule: 'oldSelf.orValue(self).i >= 0', optionalOldSelf: true },
      ),
    )
    const { l, m, ol, set, s } = schema.properties as Record<string, Schema>
    if (l) l['x-kubernetes-validations'] = [{ rule: 'self == oldSelf' }]
    if (set) set['x-kubernetes-validations'] = [{ rule: 'oldSelf.all(x, x in self)' }]
    if (s) s['x-kubernetes-validations'] = [{ rule: "oldSelf.startsWith('a') || self.startsWith('b')" }]
    if (ol?.items?.properties?.v) ol.items.properties.v['x-kubernetes-validations'] = [{ rule: 'self >= oldSelf' }]
    const values = m?.additionalProperties as Schema
    values['x-kubernetes-validations'] = [{ rule: 'self == oldSelf' }]
    const kind = await real.define(schema)
    expect(ourVerdict(schema, full)).toEqual(await kind.create(full))
    const changes = [
      { i: 2 },
      { i: 3 },
      { i: 4 },
      { i: 4, l: ['b'], set: ['b'], m: { a: '9', c: '2' }, s: 'x' },
      {
        i: 4,
        ol: [
          { k: 'y', v: 1 },
          { k: 'x', v: 0 },
        ],
      },
    ]
    await kind.store('x', full)
    for (const change of changes) {
      const theirs = await kind.update('x', { ...full, ...change })
      expect({ change, ...ourVerdict(schema, { ...full, ...change }, { old: full }) }).toEqual({ change, ...theirs })
    }
  })

  test.each([
    'self.foo',
    'self.i + self.s == 2',
    'self.i',
    'foo == 1',
    'self.i ==',
    "self.i == '1'",
    'self.i == null',
    'has(self.nul) && self.nul == null',
    "self.s.matches('(')",
    'self.l.all(x, x == 1)',
    'oldSelf.i == 1',
    'self.m.foo == 1',
    'self.any.foo == 1',
    'self.emb.foo == 1',
    "self.d == 'x'",
    'size(self.i) == 1',
    'self.unknownFn()',
    "true ? 1 : 'x'",
    "[1,'a'] == []",
    'self.s.foo',
    'self.l[0] == 1',
    "'x'",
    "self.li.sum() == 'x'",
    'self.i == 1 &&',
    'has(self.q)',
    '!self.i',
    '-self.s == 1',
    'self.l.map(x, x + 1).size() > 0',
    'self.i.foo()',
    'self.s.startsWith(1)',
    'self.i && true',
    'self.o.q == 1 && has(self.i)',
  ])('a definition with the rule %s', async rule => {
    const schema = rootOf(withRules({ rule, message: 'no' }))
    expect(ourRefusal(schema)).toEqual(await real.refusal(schema))
  })

  test.each<ValidationRule>([
    { rule: ' ' },
    { rule: 'true', message: '  ' },
    { rule: 'true', message: 'a\nb' },
    { rule: 'true\n&& true' },
    { rule: 'true', reason: 'Whatever' },
    { rule: 'true', fieldPath: '.nope' },
    { rule: 'true', messageExpression: '1' },
    { rule: 'true', messageExpression: 'self.nope' },
    { rule: 'true', messageExpression: ' ' },
  ])('a definition with a rule that says %j', async rule => {
    const schema = rootOf(withRules(rule))
    expect(ourRefusal(schema)).toEqual(await real.refusal(schema))
  })

  test.each<Schema>([
    { type: 'array' },
    {},
    { type: 'string', uniqueItems: true },
    { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'string' } },
    { type: 'string', default: 3 },
    { type: 'object', properties: { a: { type: 'string', default: 'x', maxLength: 0 } } },
    { type: 'string', anyOf: [{ type: 'string', description: 'x', default: 'q' }] },
    { type: 'array', 'x-kubernetes-list-type': 'map', items: { type: 'object' } },
    {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k', 'q', 'o'],
      items: { type: 'object', properties: { k: { type: 'string' }, o: { type: 'object' } } },
    },
    { type: 'string', 'x-kubernetes-list-type': 'set' },
    { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'object', properties: {} } },
    { type: 'object', 'x-kubernetes-map-type': 'foo' as 'atomic' },
    { type: 'string', pattern: '(' },
    { type: 'string', pattern: '(?=a)' },
    { type: 'string', pattern: '[a' },
    { type: 'string', pattern: '*a' },
    { type: 'foo' as 'string' },
    { type: 'object', 'x-kubernetes-embedded-resource': true },
    { type: 'string', 'x-kubernetes-embedded-resource': true },
    { type: 'string', format: 'date-time', default: 'x' },
    { type: 'array', 'x-kubernetes-list-type': 'bogus' as 'set', items: { type: 'string' } },
    { type: 'object', 'x-kubernetes-preserve-unknown-fields': false },
    { type: 'object', properties: { a: { type: 'integer', minimum: 5, default: 3 } } },
    { type: 'object', default: { a: 1, b: 2 }, properties: { a: { type: 'string' } } },
    { type: 'object', properties: { a: { type: 'array', items: {} } } },
    { 'x-kubernetes-int-or-string': true, 'x-kubernetes-preserve-unknown-fields': true },
    { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
  ])('a definition with a field %j', async spec => {
    const schema = rootOf(spec)
    expect(ourRefusal(schema)).toEqual(await real.refusal(schema))
  })

  test.each<Schema>([
    { type: 'string' },
    {},
    { type: 'object', additionalProperties: { type: 'string' } },
    { type: 'object', properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } } },
    {
      type: 'object',
      properties: { metadata: { type: 'object', properties: { name: { type: 'string', maxLength: 5 } } } },
    },
    { type: 'object', properties: { kind: { type: 'integer' }, metadata: { type: 'string' } } },
  ])('a definition with the schema %j', async schema => {
    expect(ourRefusal(schema)).toEqual(await real.refusal(schema))
  })
})
