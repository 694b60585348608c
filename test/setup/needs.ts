/**
 * What some tests need beyond Node, whether it is there, and how to have it.
 */
interface Need {
  met: boolean
  what: string
  how: string
}

export const needs: Record<'server' | 'node', Need> = {
  server: {
    met: Boolean(process.env.KUBEBUILDER_ASSETS),
    what: 'a real API server to hold the embedded one against',
    how: 'set KUBEBUILDER_ASSETS to a folder with kube-apiserver and etcd, such as `setup-envtest use -p path` prints',
  },
  node: {
    met: process.env.SHIPMATE_TEST_NODE === '1',
    what: 'a cluster with a node',
    how: 'set SHIPMATE_TEST_NODE=1, and KUBECONFIG to a cluster with a running kubelet',
  },
}
