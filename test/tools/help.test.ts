/**
 * Every npm script has a line of help, and every line of help a script.
 */
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { commands } from '../../tools/help.ts'

test('the table in CONTRIBUTING.md lists the scripts of package.json', () => {
  const scripts = Object.keys(manifest.scripts).map(name =>
    ['test', 'start'].includes(name) ? `npm ${name}` : `npm run ${name}`,
  )
  expect([...commands().keys()].sort()).toEqual(scripts.sort())
})
