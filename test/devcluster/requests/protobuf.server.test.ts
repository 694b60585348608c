/** Bodies in protobuf beside Go: random objects of every kind that a client may send. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { fromProtobuf } from '../../../devcluster/api/requests/protobuf/body.ts'
import { askGo, sentKinds, tableText } from '../../../tools/protobuf-data.ts'
import { goMissing } from '../../fixtures/go.ts'

interface Sample {
  kind: { Group: string; Version: string; Kind: string }
  seed: number
  bytes: string
  object: object
}

// The first of them compiles client-go.
const patience = { timeout: 600_000 }

describe.skipIf(goMissing)(`protobuf${goMissing ? ` (skipped: ${goMissing})` : ''}`, () => {
  test('every kind is read as Go reads it', patience, () => {
    const kinds = sentKinds()
    const samples = askGo(kinds, 'samples', process.env.SHIPMATE_SCHEDULES ?? '20')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as Sample)
    expect(
      new Set(samples.map(({ kind: { Group, Version, Kind } }) => `${Group ? `${Group}/` : ''}${Version} ${Kind}`)),
    ).toEqual(new Set(kinds))
    for (const { kind, seed, bytes, object } of samples) {
      const read = JSON.parse(JSON.stringify(fromProtobuf(Buffer.from(bytes, 'base64'), kind.Kind)))
      expect(read, `${kind.Kind}, seed ${seed}`).toEqual(object)
    }
  })

  test('the table is what tools/protobuf-data.ts writes', patience, () => {
    const file = new URL('../../../devcluster/data/protobuf.json', import.meta.url)
    expect(readFileSync(file, 'utf8')).toBe(tableText())
  })
})
