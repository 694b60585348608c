/**
 * An operator whose CRD on the cluster lacks a field says so where people look: in the log, by an Event on the CRD, and by not being ready; and is well as soon as it is there.
 */
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { z } from 'zod'
import { type Access, connect } from '../../../controller/kube/access.ts'
import { CustomResourceDefinition, Event } from '../../../controller/kube/kinds.ts'
import { advancedReconciler, defineCustomResource, managerFor } from '../../../controller/toolkit/index.ts'

const file = inject('kubeconfig')
const patience = { timeout: 30_000, interval: 100 }
const names = { group: 'guard.test.example.com', version: 'v1', kind: 'Box' } as const
const Old = defineCustomResource({ ...names, spec: z.object({ size: z.int().default(1) }) })
const Box = defineCustomResource({
  ...names,
  spec: z.object({ size: z.int().default(1), colour: z.string().default('red') }),
})
const { name } = Box.crd().metadata

describe.skipIf(!file)('a CRD that lacks a field', () => {
  let access: Access
  const install = (kind: typeof Old | typeof Box) =>
    access.client.apply(CustomResourceDefinition, kind.crd() as Parameters<typeof access.client.apply<object>>[1])

  beforeAll(() => {
    access = connect({ kubeconfig: { file } })
  })
  afterAll(async () => {
    await access.client.delete(CustomResourceDefinition, { name })
    await access.close()
  })

  it('is told with the field and the command, until it is there', async () => {
    await install(Old)
    const lines: string[] = []
    const manager = managerFor(advancedReconciler(Box), {
      kubeconfig: { file },
      election: false,
      signals: false,
      crdCommand: 'npm run install-crd',
      health: { host: '127.0.0.1', port: 0 },
      metrics: { host: '127.0.0.1', port: 0 },
      log: { destination: { write: line => void lines.push(line) } },
    })
    const started = manager.start()
    try {
      const ready = async () => {
        const [health] = manager.addresses
        const answer = await fetch(`http://127.0.0.1:${health?.port}/readyz?verbose`)
        return { status: answer.status, text: await answer.text() }
      }
      await vi.waitFor(async () => {
        const { status, text } = await ready()
        expect(status).toBe(500)
        expect(text).toMatch(/failed: .*has no field spec\.colour; npm run install-crd/)
      }, patience)
      expect(lines.join('')).toMatch(/"level":"error".*spec\.colour.*npm run install-crd/)
      await vi.waitFor(async () => {
        const events = await access.client.list(Event, { namespace: 'default' })
        const own = events.find(
          ({ regarding }) => regarding?.kind === 'CustomResourceDefinition' && regarding.name === name,
        )
        expect(own).toMatchObject({ reason: 'CrdOutdated', note: expect.stringContaining('spec.colour') })
      }, patience)

      await install(Box)
      await vi.waitFor(async () => expect((await ready()).status).toBe(200), patience)
      expect(lines.join('')).toContain('the CRD is the one that this operator was written for')
    } finally {
      await manager.stop()
      await started
    }
  }, 90_000)
})
