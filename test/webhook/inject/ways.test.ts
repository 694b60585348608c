/**
 * Three ways, one result: what docs/inject.md has for those who write it by hand, what the function makes of a pod template, what it makes of the pod that comes of
 * that template, and what `shipmate inject` writes are the same spec.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { injectTexts } from '../../../cli/inject/text.ts'
import { annotationNames } from '../../../controller/webhook/inject/annotations.ts'
import { inject } from '../../../controller/webhook/inject/inject.ts'
import { imageOf } from '../../../shared/images.ts'

const read = (path: string) => readFileSync(join(import.meta.dirname, '../../..', path), 'utf8')
const page = read('docs/inject.md')
const blockUnder = (heading: string) =>
  new RegExp(`^#+ ${heading}\n.*?^\`\`\`yaml\n(.*?)^\`\`\``, 'ms').exec(page)?.[1] ?? ''
const settings = { version: '0.1.0', image: imageOf('sidecar', { tag: '0.1.0' }) }

const cache = `apiVersion: apps/v1
kind: Deployment
metadata: {name: cache}
spec:
  selector: {matchLabels: {app: cache}}
  template:
    metadata:
      labels: {app: cache, shipmate.dev/lifecycle: memcached}
    spec:
      containers:
        - name: memcached
          image: memcached:1.6
`

describe.each([
  ["With the application's image", blockUnder('Ask for it'), 'postgres'],
  ['With its own image', cache, 'memcached'],
])('%s', (heading, asked, name) => {
  const workload = parse(asked)
  const declared = read(`deploy/lifecycles/${name}.yaml`)
  const lifecycle = parse(declared).spec
  const byHand = parse(blockUnder(heading)).spec

  it('a pod template becomes what stands in the page', () => {
    const claims = workload.spec.volumeClaimTemplates?.map(
      (claim: { metadata: { name: string } }) => claim.metadata.name,
    )
    const result = inject(workload.spec.template, { app: workload.metadata.name, lifecycle, claims }, settings)
    expect('pod' in result && result.pod.spec).toEqual(byHand)
  })

  it('so does a pod, whose owner says whose it is', () => {
    const isSet = workload.kind === 'StatefulSet'
    const hash = '5d4f8c7b9'
    const { metadata, spec } = workload.spec.template
    const owner = isSet ? workload.metadata.name : `${workload.metadata.name}-${hash}`
    const pod = {
      metadata: {
        ...metadata,
        labels: { ...metadata.labels, ...(!isSet && { 'pod-template-hash': hash }) },
        ownerReferences: [{ kind: isSet ? 'StatefulSet' : 'ReplicaSet', name: owner, controller: true }],
      },
      spec,
    }
    const result = inject(pod, { lifecycle }, settings)
    expect('pod' in result && result.pod.spec).toEqual(byHand)
  })

  it('and so does a file', () => {
    const inputs = [{ file: 'asked.yaml', text: asked }]
    const { texts, problems } = injectTexts(inputs, [{ file: 'lifecycle.yaml', text: declared }], settings)
    expect(problems).toEqual([])
    expect(parse(texts[0] ?? '').spec.template.spec).toEqual(byHand)
  })

  it('one that is written by hand is left alone, with the label too', () => {
    const pod = { ...workload.spec.template, spec: byHand }
    expect(inject(pod, { app: 'x', lifecycle }, settings)).toMatchObject({ outcome: 'left' })
  })
})

it('the page names every annotation that is read', () => {
  for (const name of Object.values(annotationNames)) expect(page).toContain(`| \`${name}\` |`)
})
