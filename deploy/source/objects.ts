/**
 * Everything that is installed, in the order in which it can be, by the file in which it stands.
 */
import { deployment, network, services } from './controller.ts'
import { monitoring } from './monitoring.ts'
import { account, people } from './rbac.ts'
import { webhooks } from './webhooks.ts'

export const objects: Readonly<Record<string, readonly unknown[]>> = {
  account,
  people,
  controller: deployment,
  services,
  network,
  webhooks,
  monitoring,
}
