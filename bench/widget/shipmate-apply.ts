/**
 * The Widget work as one would write it: by server-side apply, which sends nothing when nothing would change.
 *
 * A server takes longer to apply than to create, as it keeps account of every field; that is what the difference to shipmate.ts shows.
 */
import { ConfigMap } from 'shipmate/kube'
import { controller, manager, Widget } from './manager.ts'

controller.reconcile(async ({ object, client }) => {
  const { name } = object.metadata
  const { value } = object.spec
  await client.apply(ConfigMap, { metadata: { name }, data: { value } }, { owner: object })
  await client.status(Widget, object, { observedValue: value })
})
await manager.start()
