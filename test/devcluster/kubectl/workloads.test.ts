/**
 * kubectl on workloads: scale, rollout, wait, run, expose, cascades, and the care of a node.
 */
import { expect, it } from 'vitest'
import { type Kubectl, withKubectl } from './kubectl.ts'
import { deployment, pod } from './manifests.ts'

withKubectl('workloads', of => {
  const apply = async (kubectl: Kubectl, name: string, text: string) =>
    kubectl.ok(`apply -f ${kubectl.file(`${name}.yaml`, text)}`)
  const rolledOut = (name: string) => new RegExp(`deployment "${name}" successfully rolled out\n$`)

  it('rollout: status, history, undo, restart, pause, resume', async () => {
    const kubectl = of()
    const image = () => kubectl.ok('get deployment web -o jsonpath={.spec.template.spec.containers[0].image}')
    await apply(kubectl, 'web', deployment('web', 'web:1', 2))
    expect(await kubectl.ok('rollout status deployment/web --timeout=50s')).toMatch(rolledOut('web'))
    expect(await kubectl.ok('set image deployment/web main=web:2')).toBe('deployment.apps/web image updated\n')
    expect(await kubectl.ok('rollout status deployment/web --timeout=50s')).toMatch(rolledOut('web'))
    expect(await kubectl.ok('rollout history deployment/web')).toMatch(
      /^deployment\.apps\/web \nREVISION +CHANGE-CAUSE\n1 +<none>\n2 +<none>\n/,
    )
    expect(await kubectl.ok('rollout history deployment/web --revision=1')).toMatch(/Image:\s+web:1/)
    expect(await kubectl.ok('rollout undo deployment/web')).toContain('deployment.apps/web rolled back\n')
    await kubectl.ok('rollout status deployment/web --timeout=50s')
    expect(await image()).toBe('web:1')
    expect(await kubectl.ok('rollout restart deployment/web')).toBe('deployment.apps/web restarted\n')
    expect(await kubectl.ok('rollout status deployment/web --timeout=50s')).toMatch(rolledOut('web'))
    expect(await kubectl.ok('rollout pause deployment/web')).toBe('deployment.apps/web paused\n')
    expect(await kubectl.ok('rollout resume deployment/web')).toBe('deployment.apps/web resumed\n')
    await kubectl.ok('delete deployment web')
  })

  it('scale: to a number, from a number', async () => {
    const kubectl = of()
    await apply(kubectl, 'scaled', deployment('scaled'))
    expect(await kubectl.ok('scale deployment scaled --replicas=2')).toBe('deployment.apps/scaled scaled\n')
    await kubectl.ok('wait --for=jsonpath={.status.readyReplicas}=2 deployment/scaled --timeout=50s')
    expect(await kubectl.ok('get deployment scaled')).toMatch(
      /^NAME +READY +UP-TO-DATE +AVAILABLE +AGE\nscaled +2\/2 +2 +2 +\d+s\n$/,
    )
    expect(await kubectl.fails('scale deployment scaled --current-replicas=5 --replicas=1')).toMatch(
      /Expected replicas to be 5, was 2/,
    )
    await kubectl.ok('delete deployment scaled')
  })

  it('wait: for a condition, a value, an end; not forever', async () => {
    const kubectl = of()
    await apply(kubectl, 'awaited', pod('awaited'))
    expect(await kubectl.ok('wait --for=condition=Ready pod/awaited --timeout=50s')).toBe('pod/awaited condition met\n')
    expect(await kubectl.ok('wait --for=jsonpath={.status.phase}=Running pod/awaited')).toBe(
      'pod/awaited condition met\n',
    )
    expect(await kubectl.fails('wait --for=condition=Other pod/awaited --timeout=1s')).toMatch(
      /timed out waiting for the condition on pods\/awaited/,
    )
    const gone = kubectl.run(['wait', '--for=delete', 'pod/awaited', '--timeout=50s'])
    await kubectl.ok('delete pod awaited')
    expect(await gone).toMatchObject({ code: 0 })
    await kubectl.ok('create job done --image=x -- true')
    expect(await kubectl.ok('wait --for=condition=Complete job/done --timeout=50s')).toBe(
      'job.batch/done condition met\n',
    )
  })

  it('run and expose', async () => {
    const kubectl = of()
    expect(await kubectl.ok('run ran --image=x --port=8080 --labels=app=ran --command -- sleep 1000')).toBe(
      'pod/ran created\n',
    )
    await kubectl.ok('wait --for=condition=Ready pod/ran --timeout=50s')
    expect(await kubectl.ok('expose pod ran --port=80')).toBe('service/ran exposed\n')
    expect(await kubectl.ok('get service ran')).toMatch(/ran +ClusterIP +\S+ +<none> +80\/TCP/)
    const address = await kubectl.ok('get pod ran -o jsonpath={.status.podIP}')
    await expect
      .poll(() => kubectl.ok('get endpointslices -l kubernetes.io/service-name=ran'), { timeout: 20_000 })
      .toContain(address)
    await kubectl.ok('delete pod,service ran --force --grace-period=0')
  })

  it('delete: dependents in the background, before it, never', async () => {
    const kubectl = of()
    const pods = async () => (await kubectl.ok('get pods -l app=owner -o name')).split('\n').filter(Boolean)
    for (const how of ['background', 'foreground', 'orphan']) {
      await apply(kubectl, 'owner', deployment('owner'))
      await kubectl.ok('rollout status deployment/owner --timeout=50s')
      await kubectl.ok(`delete deployment owner --cascade=${how} --wait`)
      expect(await kubectl.fails('get deployment owner')).toMatch(/not found/)
      // Those before the owner are gone when it is; the others go by and by.
      if (how === 'foreground') expect(await kubectl.ok('get replicasets -l app=owner -o name')).toBe('')
      if (how === 'background') await expect.poll(pods, { timeout: 30_000 }).toEqual([])
    }
    expect(await pods()).toHaveLength(1)
    expect(await kubectl.ok('get replicasets -l app=owner -o jsonpath={.items[*].metadata.ownerReferences}')).toBe('')
    await kubectl.ok('delete replicasets -l app=owner')
  })

  it('delete --wait: until a finalizer lets go', async () => {
    const kubectl = of()
    await kubectl.ok('create configmap held')
    await kubectl.ok('patch configmap held -p {"metadata":{"finalizers":["example.com/hold"]}}')
    const deleting = kubectl.start('delete configmap held --wait')
    await deleting.until(/"held" deleted/)
    expect(await kubectl.ok('get configmap held -o jsonpath={.metadata.finalizers}')).toBe('["example.com/hold"]')
    await kubectl.ok('patch configmap held --type=json -p [{"op":"remove","path":"/metadata/finalizers"}]')
    expect((await deleting.ended).code).toBe(0)
  })

  it('cordon, taint, drain, uncordon', async () => {
    const kubectl = of()
    expect(await kubectl.ok('cordon node')).toBe('node/node cordoned\n')
    expect(await kubectl.ok('get nodes')).toMatch(/node +Ready,SchedulingDisabled /)
    expect(await kubectl.ok('uncordon node')).toBe('node/node uncordoned\n')
    expect(await kubectl.ok('taint node node k=v:NoSchedule')).toBe('node/node tainted\n')
    await apply(kubectl, 'shunned', pod('shunned'))
    await expect.poll(() => kubectl.ok('events --for pod/shunned'), { timeout: 20_000 }).toMatch(/FailedScheduling/)
    expect(await kubectl.ok('taint node node k:NoSchedule-')).toBe('node/node untainted\n')
    await kubectl.ok('wait --for=condition=Ready pod/shunned --timeout=50s')
    expect(await kubectl.fails('drain node --ignore-daemonsets')).toMatch(
      /cannot delete .*(declare no controller|not managed by)/i,
    )
    await kubectl.ok('uncordon node')
    const drained = await kubectl.ok('drain node --ignore-daemonsets --force --timeout=50s')
    expect(drained).toMatch(/evicting pod \S+\/shunned\n/)
    expect(drained).toMatch(/node\/node drained\n/)
    await kubectl.ok('uncordon node')
  })
})
