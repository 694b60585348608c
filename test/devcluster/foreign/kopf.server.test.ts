/** An operator on kopf, with the official Python client. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { ConfigMap, Event } from '../../../controller/kube/kinds.ts'
import { installWidgets } from '../../fixtures/widget.ts'
import { startCluster } from './cluster.ts'

const { SHIPMATE_TEST_PYTHON: python = 'python3' } = process.env
const hasKopf = spawnSync(python, ['-c', 'import kopf, kubernetes']).status === 0
const need = hasKopf
  ? ''
  : ' (skipped: python3 has no kopf and kubernetes; set SHIPMATE_TEST_PYTHON to one that has, such as in a venv)'
const operator = fileURLToPath(new URL('../../fixtures/kopf/widget.py', import.meta.url))
const namespace = 'default'
const patience = { timeout: 60_000, interval: 50 }

test.skipIf(!hasKopf)(
  `an operator on kopf keeps what its Widgets ask for, and cleans up before they go${need}`,
  { timeout: 180_000 },
  async () => {
    await using cluster = await startCluster()
    const { client } = cluster
    const Widget = await installWidgets(client, 'foreign.example.com')
    const ref = { name: 'one', namespace }
    await client.create(Widget, { metadata: ref, spec: { value: 'first' } })
    cluster.run(python, ['-m', 'kopf', 'run', '--standalone', '--namespace', namespace, '--verbose', operator])

    const converged = (value: string) =>
      vi.waitFor(async () => {
        const [widget, child] = await Promise.all([client.get(Widget, ref), client.get(ConfigMap, ref)])
        expect([widget.status?.observedValue, child.data?.value], await cluster.log()).toEqual([value, value])
        expect(widget.metadata.finalizers).toEqual(['foreign.example.com/kopf'])
        expect(child.metadata.ownerReferences).toMatchObject([{ kind: 'Widget', uid: widget.metadata.uid }])
      }, patience)
    await converged('first')
    await client.patch(Widget, ref, { merge: { spec: { value: 'then' } } })
    await converged('then')
    await vi.waitFor(async () => {
      const items = await client.list(Event, { namespace })
      expect(items.map(({ reason }) => reason)).toContain('Kept')
    }, patience)

    await client.delete(Widget, ref)
    await vi.waitFor(async () => expect(await client.list(Widget, { namespace })).toEqual([]), patience)
    const items = await client.list(ConfigMap, { namespace })
    expect(items.filter(({ metadata }) => metadata.name === ref.name)).toEqual([])
    expect(cluster.asked.filter(({ verb, resource }) => verb === 'delete' && resource === 'configmaps')).toMatchObject([
      { code: 200 },
    ])
    expect(cluster.errors).toEqual([])
    expect(cluster.asked.filter(({ code }) => code >= 400 && code !== 404 && code !== 409)).toEqual([])
  },
)
