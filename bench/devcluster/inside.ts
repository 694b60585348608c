/**
 * The embedded API server in the process of its client, as a test has it: `inside N CONCURRENCY` prints, as JSON, how long loading took, how long it was
 * from there to the first answer, and how long creates took.
 */
const began = performance.now()
const { createKubernetes } = await import('../../devcluster/api/kubernetes.ts')
const { sendTo } = await import('../../devcluster/api/send.ts')
const { ConfigMap, connectThrough, Namespace } = await import('shipmate/kube')
const loaded = performance.now()

const api = createKubernetes()
const { client } = connectThrough(sendTo(api))
await client.list(Namespace)
const ready = performance.now()

const [count = 0, concurrency = 1] = process.argv.slice(2).map(Number)
const create = (name: string) =>
  client.create(ConfigMap, { metadata: { name, namespace: 'default' }, data: { value: name } })
const creates: number[] = []
for (let i = 0; i < count; i++) {
  const sent = performance.now()
  await create(`one-${i}`)
  creates.push(performance.now() - sent)
}
const burst = performance.now()
let next = 0
const worker = async () => {
  while (next < count) await create(`burst-${next++}`)
}
await Promise.all(Array.from({ length: concurrency }, worker))
const perSecond = (count / (performance.now() - burst)) * 1000
await api.close()
process.stdout.write(JSON.stringify({ load: loaded - began, start: ready - loaded, creates, perSecond }))

export {}
