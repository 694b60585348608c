/**
 * The Widget work on Shipmate's runtime: for each Widget a ConfigMap of its name with its value, and the value in its status.
 *
 * The same writes as the Go program beside it (create, update, status), so that what is compared is the runtimes; shipmate-apply.ts does
 * the same by server-side apply.
 */
import { ConfigMap } from 'shipmate/kube'
import { controller, manager, Widget } from './manager.ts'

controller.reconcile(async ({ object, client }) => {
  const { name } = object.metadata
  const { value } = object.spec
  const known = await client.find(ConfigMap, object.metadata)
  if (!known) await client.create(ConfigMap, { metadata: { name }, data: { value } }, { owner: object })
  else if (known.data?.['value'] !== value) await client.update(ConfigMap, { ...known, data: { value } })
  await client.status(Widget, object, { observedValue: value })
})
await manager.start()
