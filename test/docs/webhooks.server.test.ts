/**
 * docs/webhooks.md shows a kind with defaults, validation and two versions. This runs it as it stands there, as a program, and asks kubectl what the page asks.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { type Access, connect } from '../../controller/kube/access.ts'
import {
  CustomResourceDefinition,
  MutatingWebhookConfiguration,
  Secret,
  ValidatingWebhookConfiguration,
} from '../../controller/kube/kinds.ts'
import { freePort } from '../fixtures/free-port.ts'
import { kubectlMissing, kubectlPath } from '../fixtures/kubectl.ts'
import { skipFile } from '../fixtures/skip-file.ts'

skipFile(kubectlMissing)

const kubeconfig = inject('kubeconfig')
const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/webhooks.md'), 'utf8')
const block = (language: string) => new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(page)?.[1] ?? ''

describe.skipIf(!kubeconfig)('the boat in docs/webhooks.md', () => {
  let folder: string
  let access: Access
  let child: ChildProcess
  const said: string[] = []

  /** As in a terminal: what is printed, and what is complained of. */
  const shell = async (command: string) => {
    const env = {
      ...process.env,
      KUBECONFIG: kubeconfig,
      HOME: folder,
      PATH: `${join(kubectlPath, '..')}:${process.env.PATH}`,
    }
    const { stdout, stderr } = await promisify(execFile)('bash', ['-c', command], { cwd: folder, env }).catch(
      (error: { stdout: string; stderr: string }) => error,
    )
    return (stdout + stderr).trimEnd()
  }

  beforeAll(async () => {
    access = connect({ kubeconfig: { file: kubeconfig } })
    // Inside of the package: so `shipmate` is this one, as built.
    mkdirSync(join(root, '.cache'), { recursive: true })
    folder = mkdtempSync(join(root, '.cache/docs-'))
    const [port, health] = [await freePort(), await freePort()]
    const program = block('ts')
      .replaceAll('9443', String(port))
      .replace('webhooks: {', `health: { port: ${health} }, metrics: undefined, webhooks: { listen: { port: ${port} },`)
    writeFileSync(join(folder, 'boat.ts'), program)
    writeFileSync(join(folder, 'boat.yaml'), block('yaml'))
    const { Boat } = await import(join(folder, 'boat.ts'))
    await access.client.apply(CustomResourceDefinition, Boat.crd())
    child = spawn(process.execPath, ['boat.ts'], {
      ...{ cwd: folder, env: { ...process.env, KUBECONFIG: kubeconfig }, stdio: ['ignore', 'pipe', 'pipe'] },
    })
    for (const stream of [child.stdout, child.stderr])
      if (stream) createInterface({ input: stream }).on('line', line => said.push(line))
    await vi
      .waitFor(
        async () => {
          const response = await fetch(`http://127.0.0.1:${health}/readyz`)
          expect(await response.text()).toBe('ok\n')
          const { webhooks } = await access.client.get(ValidatingWebhookConfiguration, { name: 'boat' })
          expect(webhooks).toHaveLength(1)
          // Both, and the conversion, have reached the API server.
          expect(await shell(block('sh').split('\n')[0] ?? '')).toContain('is invalid')
        },
        { timeout: 60_000, interval: 200 },
      )
      .catch(error => {
        throw new Error(`the operator said:\n${said.slice(-20).join('\n')}`, { cause: error })
      })
  }, 90_000)

  afterAll(async () => {
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    const [code] = await ended
    for (const kind of [MutatingWebhookConfiguration, ValidatingWebhookConfiguration])
      await access.client.delete(kind, { name: 'boat' })
    await access.client.delete(CustomResourceDefinition, { name: 'boats.boats.example.com' })
    await access.client.delete(Secret, { name: 'boat-webhook-tls', namespace: 'default' })
    await access.close()
    rmSync(folder, { recursive: true, force: true })
    expect(code).toBe(0)
  }, 60_000)

  test('passes the type check, strictly, as a program of somebody else', async () => {
    const options = '--noEmit --strict --module nodenext --target es2024 --types node --skipLibCheck false'
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    expect(await shell(`'${process.execPath}' '${tsc}' --ignoreConfig ${options} boat.ts`)).toBe('')
  })

  test('answers kubectl as the page says', async () => {
    const steps = block('sh').trimEnd().split('\n')
    for (const [index, command] of steps.entries()) {
      if (command.startsWith('#')) continue
      const prints = steps[index + 1]?.startsWith('# ') ? steps[index + 1]?.slice(2) : undefined
      const printed = await shell(command)
      if (prints !== undefined) expect(printed, command).toBe(prints)
    }
  })
})
