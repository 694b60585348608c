/**
 * A process that hosts a node, for tests that kill it: `host.ts KUBECONFIG FOLDER NAME`. Says `ready` when the node is.
 */
import { connect } from '../../../controller/kube/access.ts'
import { startNodes } from '../../../devcluster/node/nodes.ts'

const [, , file = '', folder = '', name = '', isolation] = process.argv
const { client } = connect({ kubeconfig: { file } })
const options = { client, folder, name, labels: () => ({ 'shipmate.dev/world': name }) }
const nodes = await startNodes(isolation === 'none' ? { ...options, isolation } : options)
console.log('ready')
process.once('SIGTERM', () => nodes.stop().then(() => process.exit(0)))
