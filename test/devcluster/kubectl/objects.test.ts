/**
 * kubectl on objects: get in its forms, describe, apply, diff, edit, patch, label, create, delete.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { type Kubectl, withKubectl } from './kubectl.ts'
import { boat, boats, configMap, deployment, pod, service } from './manifests.ts'

withKubectl('objects', of => {
  let kubectl: Kubectl
  let group: string
  /** `configmap "x" deleted`, newer ones with `from NAMESPACE namespace`. */
  const deleted = (what: string) => new RegExp(`^${what} deleted( from \\S+ namespace)?\n`)
  beforeAll(async () => {
    kubectl = of()
    group = `${kubectl.namespace}.example.com`
    await kubectl.ok(`apply -f ${kubectl.file('boats.yaml', boats(group))}`)
    await kubectl.ok(`wait --for=condition=Established crd/boats.${group}`)
  })

  it('get: a table, a wide one, names, columns, YAML, nothing', async () => {
    await kubectl.ok(`apply -f ${kubectl.file('pod.yaml', pod('box'))}`)
    await kubectl.ok('wait --for=condition=Ready pod/box --timeout=30s')
    expect(await kubectl.ok('get pods')).toMatch(
      /^NAME {2,}READY {2,}STATUS {2,}RESTARTS {2,}AGE\nbox {2,}1\/1 {2,}Running {2,}0 {2,}\d+s\n$/,
    )
    expect(await kubectl.ok('get pods -o wide')).toMatch(
      /NODE +NOMINATED NODE +READINESS GATES\nbox .* 127\.\S+ +node +<none> +<none>\n$/,
    )
    expect(await kubectl.ok('get pods -o name')).toBe('pod/box\n')
    expect(await kubectl.ok('get pod box -o custom-columns=N:.metadata.name,I:.spec.containers[0].image')).toBe(
      'N     I\nbox   box\n',
    )
    expect(await kubectl.ok('get pod box -o yaml')).toMatch(/^apiVersion: v1\nkind: Pod\nmetadata:\n/)
    expect(await kubectl.ok('get pods -l app=box --show-labels')).toMatch(/ app=box\n$/)
    expect(await kubectl.ok('get pods --field-selector status.phase=Succeeded')).toMatch(
      /^No resources found in \S+ namespace\.\n$/,
    )
    expect(await kubectl.ok('get pods --sort-by=.metadata.name --no-headers')).toMatch(/^box /)
    expect(await kubectl.fails('get pod other')).toBe('Error from server (NotFound): pods "other" not found\n')
    expect(await kubectl.fails('get ships')).toBe('error: the server doesn\'t have a resource type "ships"\n')
    expect(await kubectl.ok('get nodes')).toMatch(
      /^NAME +STATUS +ROLES +AGE +VERSION\nnode +Ready +<none> +\S+ +v1\.\d+/,
    )
    expect(await kubectl.ok('get --raw /readyz')).toBe('ok')
  })

  it('get -w: each change as it comes', async () => {
    const watching = kubectl.start('get configmaps -w --field-selector metadata.name=seen')
    await kubectl.ok('create configmap seen --from-literal=a=1')
    await watching.until(/seen +1 +/)
    await kubectl.ok('patch configmap seen -p {"data":{"b":"2"}}')
    await watching.until(/seen +2 +/)
    watching.child.kill()
  })

  it('describe: an object with its events, in their order', async () => {
    await kubectl.ok(`apply -f ${kubectl.file('described.yaml', `${pod('described')}---${service('described')}`)}`)
    await kubectl.ok('wait --for=condition=Ready pod/described --timeout=30s')
    const text = await kubectl.ok('describe pod described')
    expect(text).toMatch(/^Name: +described\nNamespace: +k/)
    expect(text).toMatch(/Node: +node\/127\./)
    expect(text).toMatch(/State: +Running\n/)
    await expect
      .poll(() => kubectl.ok('describe pod described'), { timeout: 20_000 })
      .toMatch(/Events:\n.*\n.*\n +Normal +Scheduled .*default-scheduler.*\n +Normal +Created .*\n +Normal +Started /)
    expect(await kubectl.ok('describe service described')).toMatch(/Selector: +app=described\nType: +ClusterIP\n/)
    expect(await kubectl.ok('describe node node')).toMatch(/Ready +True .*KubeletReady/)
    expect(await kubectl.ok(`describe namespace ${kubectl.namespace}`)).toMatch(/Status: +Active/)
    expect(await kubectl.ok(`describe crd boats.${group}`)).toMatch(/Names Accepted|NamesAccepted/)
  })

  it('events: of one object, of all', async () => {
    await kubectl.ok(`apply -f ${kubectl.file('eventful.yaml', pod('eventful'))}`)
    await kubectl.ok('wait --for=condition=Ready pod/eventful --timeout=30s')
    await expect
      .poll(() => kubectl.ok('events --for pod/eventful'), { timeout: 20_000 })
      .toMatch(
        /^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n.*Scheduled +Pod\/eventful +Successfully assigned .*\n.*Created .*\n.*Started /,
      )
    expect(await kubectl.ok('get events --field-selector involvedObject.name=eventful')).toMatch(
      /Normal +Started +pod\/eventful/,
    )
  })

  it('apply: made, changed, left alone, pruned of what went', async () => {
    const apply = (data: Record<string, string>, how = '') =>
      kubectl.ok(`apply ${how} -f ${kubectl.file('applied.yaml', configMap('applied', data))}`)
    const data = async () => JSON.parse(await kubectl.ok('get configmap applied -o jsonpath={.data}'))
    expect(await apply({ a: '1', b: '2' })).toBe('configmap/applied created\n')
    expect(await apply({ a: '1', b: '2' })).toBe('configmap/applied unchanged\n')
    await kubectl.ok('patch configmap applied -p {"data":{"other":"3"}}')
    expect(await apply({ a: '0' })).toBe('configmap/applied configured\n')
    expect(await data()).toEqual({ a: '0', other: '3' })
    expect(await kubectl.ok('apply view-last-applied configmap applied')).toMatch(
      /^apiVersion: v1\ndata:\n {2}a: "0"\n/,
    )
    expect(await apply({ a: '9' }, '--dry-run=server')).toBe('configmap/applied configured (server dry run)\n')
    expect(await data()).toEqual({ a: '0', other: '3' })
  })

  it('apply --server-side: a conflict, and force', async () => {
    const apply = (value: string, how: string) =>
      kubectl.run([
        'apply',
        '--server-side',
        ...how.split(' '),
        '-n',
        kubectl.namespace,
        '-f',
        kubectl.file('owned.yaml', configMap('owned', { a: value })),
      ])
    expect((await apply('1', '--field-manager=one')).stdout).toBe('configmap/owned serverside-applied\n')
    const refused = await apply('2', '--field-manager=two')
    expect(refused.code).not.toBe(0)
    expect(refused.stderr).toMatch(/Apply failed with 1 conflict: conflict with "one": \.data\.a/)
    expect((await apply('2', '--field-manager=two --force-conflicts')).stdout).toBe(
      'configmap/owned serverside-applied\n',
    )
    const shown = await kubectl.ok('get configmap owned -o yaml --show-managed-fields')
    expect(shown).toMatch(/manager: two\n/)
    expect(shown).not.toMatch(/manager: one\n/)
  })

  it('apply with a wrong field: refused, told, let through', async () => {
    const wrong = kubectl.file('wrong.yaml', boat(group, 'dinghy').replace('captain', 'captian'))
    expect(await kubectl.fails(`apply --validate=strict -f ${wrong}`)).toMatch(
      /strict decoding error: unknown field "spec\.crew\.captian"/,
    )
    expect(await kubectl.ok(`apply --validate=warn -f ${wrong}`)).toContain(
      'Warning: unknown field "spec.crew.captian"',
    )
    expect(await kubectl.ok(`apply --validate=ignore -f ${wrong}`)).toMatch(
      /^boat\.\S+\/dinghy (unchanged|configured)\n$/,
    )
    const other = kubectl.file('other.yaml', deployment('other').replace('replicas', 'replcas'))
    expect(await kubectl.fails(`apply -f ${other}`)).toMatch(/strict decoding error: unknown field "spec\.replcas"/)
    expect(
      await kubectl.fails(`create -f ${kubectl.file('few.yaml', boat(group, 'few').replace('oars: 2', 'oars: -2'))}`),
    ).toMatch(
      /The Boat "few" is invalid: \n\* spec\.oars: Invalid value: -2: spec\.oars in body should be greater than or equal to 0\n\* \.spec\.oars: Invalid value: -2: should be a non-negative integer/,
    )
  })

  it('apply of a kind that nobody knows', async () => {
    const file = kubectl.file('unknown.yaml', boat('nowhere.example.com', 'x'))
    expect(await kubectl.fails(`apply -f ${file}`)).toMatch(
      /no matches for kind "Boat" in version "nowhere\.example\.com\/v1"\nensure CRDs are installed first\n$/,
    )
  })

  it('apply -k: a kustomization', async () => {
    const folder = join(kubectl.folder, `kustomized-${kubectl.namespace}`)
    mkdirSync(folder)
    writeFileSync(join(folder, 'web.yaml'), service('kustomized'))
    writeFileSync(
      join(folder, 'kustomization.yaml'),
      'namePrefix: my-\nresources: [web.yaml]\nconfigMapGenerator: [{name: settings, literals: [a=1]}]\n',
    )
    expect(await kubectl.ok(`apply -k ${folder}`)).toMatch(
      /^configmap\/my-settings-\w+ created\nservice\/my-kustomized created\n$/,
    )
    expect(await kubectl.ok(`delete -k ${folder}`)).toMatch(deleted('configmap "my-settings-\\w+"'))
  })

  it('diff: what an apply would change; exit code 1 where it would', async () => {
    await kubectl.ok(`apply -f ${kubectl.file('diffed.yaml', service('diffed'))}`)
    expect(await kubectl.ok(`diff -f ${kubectl.file('diffed.yaml', service('diffed'))}`)).toBe('')
    const file = kubectl.file('diffed.yaml', service('diffed').replace('port: 80', 'port: 81'))
    const { code, stdout } = await kubectl.run(['diff', '-f', file])
    expect(code).toBe(1)
    expect(stdout).toMatch(/\n- {2}- port: 80\n\+ {2}- port: 81\n/)
    // Another manager adds a port, and ports are told apart by their names then.
    const refused = await kubectl.run(['diff', '--server-side', '--force-conflicts', '-f', file])
    expect(refused.code).toBe(2)
    expect(refused.stderr).toMatch(/spec\.ports\[1\]\.name: Required value/)
    expect(await kubectl.ok('get service diffed -o jsonpath={.spec.ports[0].port}')).toBe('80')
  })

  it('edit: by a program', async () => {
    await kubectl.ok('create configmap edited --from-literal=a=before')
    const env = { KUBE_EDITOR: 'sed -i s/before/after/' }
    expect(await kubectl.ok('edit configmap edited', { env })).toBe('configmap/edited edited\n')
    expect(await kubectl.ok('get configmap edited -o jsonpath={.data.a}')).toBe('after')
    expect(await kubectl.ok('edit configmap edited', { env: { KUBE_EDITOR: 'true' } })).toMatch(/no changes made/)
  })

  it('patch: strategic, merge, JSON, of a subresource', async () => {
    await kubectl.ok(`apply -f ${kubectl.file('patched.yaml', deployment('patched', 'web:1', 0))}`)
    const read = (path: string) => kubectl.ok(`get deployment patched -o jsonpath=${path}`)
    const strategic = '{"spec":{"template":{"spec":{"containers":[{"name":"more","image":"more:1"}]}}}}'
    expect(await kubectl.ok(`patch deployment patched -p ${strategic}`)).toBe('deployment.apps/patched patched\n')
    expect(await read('{.spec.template.spec.containers[*].name}')).toBe('more main')
    await kubectl.ok('patch deployment patched --type=merge -p {"metadata":{"labels":{"a":"b"}}}')
    await kubectl.ok('patch deployment patched --type=json -p [{"op":"remove","path":"/metadata/labels/app"}]')
    expect(JSON.parse(await read('{.metadata.labels}'))).toEqual({ a: 'b' })
    expect(await kubectl.ok('patch deployment patched -p {"metadata":{"labels":{"a":"b"}}}')).toBe(
      'deployment.apps/patched patched (no change)\n',
    )
    expect(
      await kubectl.fails('patch deployment patched --type=json -p [{"op":"test","path":"/spec/replicas","value":7}]'),
    ).toMatch(/the server rejected our request due to an error in our request/)
    await kubectl.ok(`apply -f ${kubectl.file('skiff.yaml', boat(group, 'skiff'))}`)
    await kubectl.ok('patch boat skiff --subresource=status --type=merge -p {"status":{"oars":1},"spec":{"oars":9}}')
    expect(await kubectl.ok('get boat skiff -o jsonpath={.status.oars}/{.spec.oars}')).toBe('1/2')
    expect(await kubectl.ok('scale boat skiff --replicas=4')).toMatch(/^boat\.\S+\/skiff scaled\n$/)
    expect(await kubectl.ok('get bt skiff -o wide')).toMatch(/^NAME +OARS +CAPTAIN\nskiff +4 +Ada\n/)
  })

  it('label and annotate', async () => {
    await kubectl.ok('create configmap marked')
    expect(await kubectl.ok('label configmap marked a=b')).toBe('configmap/marked labeled\n')
    expect(await kubectl.fails('label configmap marked a=c')).toMatch(/'a' already has a value \(b\)/)
    expect(await kubectl.ok('label configmap marked a=c --overwrite')).toBe('configmap/marked labeled\n')
    expect(await kubectl.ok('label configmap marked a-')).toBe('configmap/marked unlabeled\n')
    expect(await kubectl.ok('annotate configmap marked x=y')).toBe('configmap/marked annotated\n')
    expect(await kubectl.fails('label configmap marked a=-')).toMatch(/Invalid value|invalid label value/)
  })

  const makes: readonly (readonly [line: string, says: string])[] = [
    ['configmap one --from-literal=a=b', 'configmap/one'],
    ['secret generic one --from-literal=a=b', 'secret/one'],
    [
      'secret docker-registry login --docker-server=r.example.com --docker-username=u --docker-password=p',
      'secret/login',
    ],
    ['serviceaccount one', 'serviceaccount/one'],
    ['role one --verb=get --resource=pods', 'role.rbac.authorization.k8s.io/one'],
    ['rolebinding one --role=one --serviceaccount=NS:one', 'rolebinding.rbac.authorization.k8s.io/one'],
    ['clusterrole NS --verb=get --resource=pods', 'clusterrole.rbac.authorization.k8s.io/NS'],
    [
      'clusterrolebinding NS --clusterrole=NS --serviceaccount=NS:one',
      'clusterrolebinding.rbac.authorization.k8s.io/NS',
    ],
    ['deployment one --image=x --replicas=0', 'deployment.apps/one'],
    ['job one --image=x -- true', 'job.batch/one'],
    ["cronjob one --image=x --schedule='*/5 * * * *' -- true", 'cronjob.batch/one'],
    ['job two --from=cronjob/one', 'job.batch/two'],
    ['quota one --hard=pods=100', 'resourcequota/one'],
    ['poddisruptionbudget one --selector=app=x --min-available=1', 'poddisruptionbudget.policy/one'],
    ['priorityclass NS --value=10', 'priorityclass.scheduling.k8s.io/NS'],
    ['ingress one --rule=a.example.com/=one:80', 'ingress.networking.k8s.io/one'],
    ['service clusterip one --tcp=80:8080', 'service/one'],
    ['service nodeport two --tcp=80:8080', 'service/two'],
    ['service externalname three --external-name=a.example.com', 'service/three'],
    ['namespace NS-more', 'namespace/NS-more'],
  ]
  it('create: each kind that there is a command for, and delete', async () => {
    const said = (text: string) => text.replaceAll('NS', kubectl.namespace)
    for (const [line, says] of makes) {
      const dry = line.replace(/( -- |$)/, ' --dry-run=server$1')
      expect(await kubectl.ok(said(`create ${dry}`))).toMatch(/created \(server dry run\)/)
      expect(await kubectl.ok(said(`create ${line}`))).toBe(`${said(says)} created\n`)
    }
    expect(await kubectl.fails('create configmap one')).toMatch(/configmaps "one" already exists/)
    expect((await kubectl.ok('create token one')).split('.')).toHaveLength(3)
    expect(await kubectl.ok(`auth can-i get pods --as=system:serviceaccount:${kubectl.namespace}:one`)).toBe('yes\n')
    for (const [, says] of makes.toReversed()) {
      const [kind = '', name = ''] = said(says).split('/')
      expect(await kubectl.ok(`delete ${kind} ${name}`)).toMatch(deleted(`${kind} "${name}"`))
    }
  })

  it('replace: what is there, and not what is not', async () => {
    await kubectl.ok('create configmap replaced --from-literal=a=1')
    expect(await kubectl.ok(`replace -f ${kubectl.file('r.yaml', configMap('replaced', { b: '2' }))}`)).toBe(
      'configmap/replaced replaced\n',
    )
    expect(await kubectl.ok('get configmap replaced -o jsonpath={.data}')).toBe('{"b":"2"}')
    expect(await kubectl.fails(`replace -f ${kubectl.file('r.yaml', configMap('missing', {}))}`)).toMatch(
      /configmaps "missing" not found/,
    )
  })

  it('delete: by label, all, what is not there', async () => {
    for (const name of ['gone-1', 'gone-2'])
      await kubectl.ok(
        `create -f ${kubectl.file('d.yaml', configMap(name, {}).replace('}', ', labels: {gone: soon}}'))}`,
      )
    expect((await kubectl.ok('delete configmaps -l gone=soon')).split('\n').filter(Boolean)).toHaveLength(2)
    expect(await kubectl.fails('delete configmap gone-1')).toBe(
      'Error from server (NotFound): configmaps "gone-1" not found\n',
    )
    expect(await kubectl.ok('delete configmap gone-1 --ignore-not-found')).toBe('')
  })
})
