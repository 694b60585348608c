/**
 * What kubectl asks about the cluster: explain, api-resources, api-versions, auth, version, top.
 */
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { type Kubectl, withKubectl } from './kubectl.ts'
import { boats } from './manifests.ts'

withKubectl('questions', of => {
  let kubectl: Kubectl
  let group: string
  beforeAll(async () => {
    kubectl = of()
    group = `${kubectl.namespace}.example.com`
    await kubectl.ok(`apply -f ${kubectl.file('boats.yaml', boats(group))}`)
    await kubectl.ok(`wait --for=condition=Established crd/boats.${group}`)
  })

  it('explain: a built-in kind', async () => {
    expect(await kubectl.ok('explain deployment.spec.strategy')).toMatch(
      /^GROUP: +apps\nKIND: +Deployment\nVERSION: +v1\n\nFIELD: strategy <DeploymentStrategy>\n(?:.*\n)* {2}rollingUpdate\t<RollingUpdateDeployment>\n/,
    )
    const all = await kubectl.ok('explain pod.spec.containers.lifecycle --recursive')
    expect(all).toMatch(/ {2}preStop\t<LifecycleHandler>\n {4}exec\t<ExecAction>\n {6}command\t<\[\]string>\n/)
    expect(await kubectl.fails('explain pod.spec.nothing')).toMatch(/field "nothing" does not exist/)
    expect(await kubectl.fails('explain ships')).toMatch(/the server doesn't have a resource type "ships"/)
  })

  it('explain: a custom one, with its texts', async () => {
    const text = await kubectl.ok(`explain boat.spec --api-version=${group}/v1`)
    expect(text).toMatch(/FIELD: spec <Object>\n+DESCRIPTION:\n {4}What it should be\./)
    expect(text).toMatch(/ {2}oars\t<integer> -required-\n {4}How many oars it has\./)
    expect(await kubectl.ok(`explain boat --recursive --api-version=${group}/v1`)).toMatch(
      / {2}spec\t<Object>\n {4}crew\t<Object>\n {6}captain\t<string>\n {6}sailors\t<\[\]string>\n {4}oars\t<integer> -required-\n/,
    )
  })

  it('api-resources and api-versions', async () => {
    expect(await kubectl.ok(`api-resources --api-group=${group}`)).toMatch(
      new RegExp(`^NAME +SHORTNAMES +APIVERSION +NAMESPACED +KIND\nboats +bt +${group}/v1 +true +Boat\n$`),
    )
    expect(await kubectl.ok('api-resources --api-group=apps -o name')).toBe(
      'controllerrevisions.apps\ndaemonsets.apps\ndeployments.apps\nreplicasets.apps\nstatefulsets.apps\n',
    )
    expect(await kubectl.ok('api-resources --namespaced=false')).toMatch(/^nodes +no +v1 +false +Node$/m)
    const versions = (await kubectl.ok('api-versions')).trim().split('\n')
    expect(versions).toEqual(expect.arrayContaining(['apps/v1', 'batch/v1', `${group}/v1`, 'v1']))
  })

  it('auth can-i, for oneself and as another; --list; whoami', async () => {
    const as = `--as=system:serviceaccount:${kubectl.namespace}:reader`
    expect(await kubectl.ok("auth can-i '*' '*'")).toBe('yes\n')
    expect(await kubectl.fails(`auth can-i list pods ${as}`)).toBe('no\n')
    await kubectl.ok('create serviceaccount reader')
    await kubectl.ok('create role reads --verb=list,get --resource=pods')
    await kubectl.ok(`create rolebinding reads --role=reads --serviceaccount=${kubectl.namespace}:reader`)
    expect(await kubectl.ok(`auth can-i list pods ${as}`)).toBe('yes\n')
    expect(await kubectl.ok(`auth can-i --list ${as}`)).toMatch(/^pods +\[\] +\[\] +\[list get\]$/m)
    expect(await kubectl.ok(`get pods ${as}`)).toMatch(/No resources found/)
    expect(await kubectl.fails(`get secrets ${as}`)).toMatch(
      /^Error from server \(Forbidden\): secrets is forbidden: User "system:serviceaccount:\S+:reader" cannot list resource "secrets" in API group "" in the namespace "\S+"\n$/,
    )
    expect(await kubectl.ok('auth whoami')).toMatch(/^Username +kubernetes-admin$/m)
  })

  it('as a person by certificate, who may nothing yet', async () => {
    const path = join(kubectl.folder, `jane-${kubectl.namespace}`)
    await kubectl.cluster.listening?.writeKubeconfig(path, { name: 'jane', groups: ['crew'] })
    const jane = kubectl.at(path)
    expect(await jane.fails('get pods')).toMatch(/User "jane" cannot list resource "pods"/)
    expect(await jane.fails('exec nobody -- true')).toMatch(/User "jane" cannot (get|create) resource "pods(\/exec)?"/)
    expect(await jane.ok('auth whoami')).toMatch(/^Groups +\[crew system:authenticated\]$/m)
  })

  it('version, cluster-info, top', async () => {
    expect(await kubectl.ok('version')).toMatch(/^Server Version: v1\.36\.\d+$/m)
    expect(await kubectl.ok('cluster-info')).toMatch(/is running at/)
    expect(await kubectl.fails('top pods')).toBe('error: Metrics API not available\n')
    expect(await kubectl.fails('top nodes')).toBe('error: Metrics API not available\n')
  })
})
