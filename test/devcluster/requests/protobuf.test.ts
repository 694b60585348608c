import { expect, test } from 'vitest'
import { createKubernetes } from '../../../devcluster/api/kubernetes.ts'
import { fromProtobuf } from '../../../devcluster/api/requests/protobuf/body.ts'
import { admin } from '../../../devcluster/api/send.ts'

const protobuf = 'application/vnd.kubernetes.protobuf'

/** What kubectl 1.36 sends, byte by byte. */
const captured = {
  /** kubectl create deployment web --image=x --replicas=0 --port=80 */
  deployment:
    'azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50EsgBCisKCXdlYi0yNDIxMBIAGgAiACoAMgA4AEIAWhAKA2FwcBIJd2ViLTI0MjEwEooBCAASEgoQCgNhcHASCXdlYi0yNDIxMBpqCiIKABIAGgAiACoAMgA4AEIAWhAKA2FwcBIJd2ViLTI0MjEwEkQSJgoBeBIBeCoAMgoKABAAGFAiACoAQgBqAHIAgAEAiAEAkAEAogEAGgAyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBACICCgAoADgAGgwIABAAGAAgACgAOAAaACIA',
  /** kubectl auth can-i create pods */
  review:
    'azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPwoQCgASABoAIgAqADIAOABCABIhCh8KB2RlZmF1bHQSBmNyZWF0ZRoAIgAqBHBvZHMyADoAGggIABIAGgAgABoAIgA=',
  /** kubectl create serviceaccount s1, and create token s1 */
  account: 'azhzAAoUCgJ2MRIOU2VydmljZUFjY291bnQSFAoSCgJzMRIAGgAiACoAMgA4AEIAGgAiAA==',
  token: 'azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBIaChAKABIAGgAiACoAMgA4AEIAEgAaBAoAEgAaACIA',
}

const bytesOf = (base64: string) => Buffer.from(base64, 'base64')

test('what kubectl sends is read: a zero that was said stays, what was not said is left out', () => {
  expect(fromProtobuf(bytesOf(captured.deployment), 'Deployment')).toEqual({
    kind: 'Deployment',
    apiVersion: 'apps/v1',
    metadata: { name: 'web-24210', labels: { app: 'web-24210' } },
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: 'web-24210' } },
      template: {
        metadata: { labels: { app: 'web-24210' } },
        spec: { containers: [{ name: 'x', image: 'x', ports: [{ containerPort: 80 }], resources: {} }] },
      },
      strategy: {},
    },
    status: {},
  })
})

test('requests in protobuf are answered as those in JSON, whatever the field validation', async () => {
  await using api = createKubernetes()
  const post = async (path: string, body: Uint8Array, type = protobuf) => {
    const [target = '', query] = path.split('?')
    const answer = await api.handle({
      method: 'POST',
      path: target,
      query: new URLSearchParams(query),
      headers: { 'content-type': type, accept: `${protobuf},application/json` },
      body,
      user: admin,
      signal: new AbortController().signal,
    })
    return { status: answer.status, body: JSON.parse(answer.body as string) }
  }
  const made = await post('/apis/apps/v1/namespaces/default/deployments', bytesOf(captured.deployment))
  expect([made.status, made.body.spec.replicas, made.body.spec.strategy.type]).toEqual([201, 0, 'RollingUpdate'])
  const may = await post('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', bytesOf(captured.review))
  expect([may.status, may.body.status.allowed]).toEqual([201, true])
  await post('/api/v1/namespaces/default/serviceaccounts?fieldValidation=Strict', bytesOf(captured.account))
  const token = await post('/api/v1/namespaces/default/serviceaccounts/s1/token', bytesOf(captured.token))
  expect([token.status, token.body.spec.expirationSeconds]).toEqual([201, 3600])
})

test('what is no such object is refused with a reason', () => {
  const refusal = (bytes: Uint8Array, wanted = 'Deployment') => {
    try {
      fromProtobuf(bytes, wanted)
    } catch (error) {
      return (error as Error).message
    }
    return undefined
  }
  expect(refusal(Buffer.from('{}'))).toMatch('expected prefix [107 56 115 0]')
  const sent = bytesOf(captured.deployment)
  expect(refusal(sent.subarray(0, 40))).toMatch('unexpected EOF')
  const other = Buffer.from(sent)
  other.write('Deploymend', sent.indexOf('Deployment'))
  expect(refusal(other)).toMatch('no kind "Deploymend" is registered for version "apps/v1"')
})

test('no byte that is changed makes it fail otherwise than with a reason', () => {
  for (let at = 0; at < bytesOf(captured.deployment).length; at++) {
    for (const byte of [0, 1, 0x7f, 0x80, 0xff]) {
      const sent = bytesOf(captured.deployment)
      sent[at] = byte
      try {
        fromProtobuf(sent, 'Deployment')
      } catch (error) {
        expect(error).toHaveProperty('status.code', 400)
      }
    }
  }
})
