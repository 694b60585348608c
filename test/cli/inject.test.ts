/**
 * `shipmate inject` as a process: files and the standard input in, the text out, warnings and refusals beside it, and how it ends.
 */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { imageOf } from '../../shared/images.ts'
import { emptyFolder, root, shipmate } from './shipmate.ts'

const orders = join(import.meta.dirname, 'inject/orders.yaml')
const golden = readFileSync(join(import.meta.dirname, 'inject/orders.injected.yaml'), 'utf8').replace(
  'injected: 0.1.0',
  `injected: ${manifest.version}`,
)
const image = ['--image', 'shipmate-sidecar:0.1.0']

test('prints the file with the sidecar, from a file and from the standard input', async () => {
  expect(await shipmate(['inject', '-f', orders, ...image])).toEqual({ status: 0, stdout: golden, stderr: '' })
  const child = execFile(process.execPath, [join(root, 'bin/shipmate.cjs'), 'inject', '-f', '-', ...image])
  child.stdin?.end(readFileSync(orders))
  expect(await text(child.stdout)).toBe(golden)
})

test('the registry is one value, and says where the image is', async () => {
  const { stdout } = await shipmate([
    'inject',
    '-f',
    orders,
    '--registry',
    'registry.example.com/team/',
    '--pull-secret',
    'mirror',
  ])
  const unsaid = await shipmate(['inject', '-f', orders])
  expect(unsaid.stdout).toContain(`image: ${imageOf('sidecar', { tag: manifest.version })}\n`)
  expect(stdout).toMatch(/image: registry\.example\.com\/team\/shipmate-sidecar:\d+\.\d+\.\d+\n/)
  expect(stdout).toMatch(/imagePullSecrets:\n +- name: mirror\n/)
})

test('warnings go to stderr, and the lifecycle is found in another file', async () => {
  const cwd = emptyFolder()
  const [service = '', set = '', shop = '', lifecycle = ''] = readFileSync(orders, 'utf8').split('---\n')
  writeFileSync(join(cwd, 'set.yaml'), [service, set].join('---\n'))
  writeFileSync(join(cwd, 'shop.yaml'), shop)
  writeFileSync(join(cwd, 'lifecycle.yaml'), lifecycle)
  const alone = await shipmate(['inject', '-f', 'set.yaml', 'shop.yaml', '--no-native-sidecars'], { cwd })
  expect(alone.status).toBe(0)
  expect(alone.stderr).toBe(
    'set.yaml: StatefulSet orders-db: lifecycle kept is not known here: whether the grace period is long enough for its preStop action is not checked\n' +
      'set.yaml: StatefulSet orders-db: the sidecar is a plain container: it ends at the same time as the application, not after it\n',
  )
  expect(alone.stdout.split(/^---$/m)).toHaveLength(3)
  const known = await shipmate(['inject', '-f', 'set.yaml', '--lifecycle-file', 'lifecycle.yaml'], { cwd })
  expect(known).toMatchObject({ status: 0, stderr: '' })
  expect(known.stdout).toContain('terminationGracePeriodSeconds: 112\n')
})

test('a file without the label is printed as it is, with a word on stderr', async () => {
  const cwd = emptyFolder()
  writeFileSync(join(cwd, 'a.yaml'), 'kind: Service\n')
  expect(await shipmate(['inject', '-f', 'a.yaml'], { cwd })).toEqual({
    ...{ status: 0, stdout: 'kind: Service\n' },
    stderr: 'no pod template has the label shipmate.dev/lifecycle: nothing was added\n',
  })
})

describe('ends with 1 and prints nothing', () => {
  test('when something is refused', async () => {
    const cwd = emptyFolder()
    const asked = readFileSync(orders, 'utf8').replace(
      '    spec:\n      # Everything',
      '      annotations: {shipmate.dev/imageof: postgres}\n    spec:\n      # Everything',
    )
    writeFileSync(join(cwd, 'a.yaml'), asked)
    expect(await shipmate(['inject', '-f', 'a.yaml'], { cwd })).toEqual({
      ...{ status: 1, stdout: '' },
      stderr:
        'a.yaml: StatefulSet orders-db: annotation shipmate.dev/imageof is not known; did you mean "shipmate.dev/image-of"?\n' +
        'shipmate: refused: nothing was printed\n',
    })
  })

  test('when a file is not there', async () => {
    const { status, stdout, stderr } = await shipmate(['inject', '-f', 'nowhere.yaml'])
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toMatch(/^shipmate: nowhere\.yaml cannot be read: ENOENT/)
  })
})

test.each([
  ['inject', 'required option "-f, --filename <FILE...>" not specified'],
  ['inject -f a.yaml -o json', '--output json: yaml is the only format'],
  ['inject -f a.yaml --app x', '--app needs --lifecycle; a template with the label names its app by an annotation'],
  ['inject -f a.yaml --image x --registry y', '--image and --registry: one of them says where the image is'],
  ['inject -f a.yaml --lifecycel x', 'unknown option "--lifecycel", did you mean "--lifecycle"?'],
])('%s was called the wrong way', async (line, sentence) => {
  const { status, stdout, stderr } = await shipmate(line.split(' '))
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(stderr).toContain(sentence)
})

async function text(stream: NodeJS.ReadableStream | null): Promise<string> {
  let all = ''
  for await (const chunk of stream ?? []) all += chunk
  return all
}
