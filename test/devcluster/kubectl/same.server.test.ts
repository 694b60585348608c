/**
 * The same kubectl, the same commands, one after the other, on the embedded cluster and on a real API server: it prints the same and ends with the
 * same code. Neither has controllers. What cannot be the same is made so: times, uids, versions, addresses, names of temporary files.
 */
import { expect, inject, it } from 'vitest'
import { withKubectl } from './kubectl.ts'
import { boat, boats, configMap, deployment, service } from './manifests.ts'

const normal = (text: string): string =>
  text
    .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( [+-]\d{4}|Z)?/g, 'TIME')
    .replace(/\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000/g, 'TIME')
    .replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'UID')
    .replace(/resourceVersion: "\d+"/g, 'resourceVersion: VERSION')
    .replace(/Resource Version: +\d+/g, 'Resource Version: VERSION')
    .replace(/\b(10|127)(\.\d+){3}\b/g, 'ADDRESS')
    .replace(/(LIVE|MERGED)-\d+/g, '$1')
    .replace(/(?<=\s)\d+(ms|s|m)(?=\s|$)/gm, 'AGE')
    // Widths go with what was in the columns.
    .replace(/ {2,}/g, '  ')
    .replace(/-{3,}/g, '---')

/** The fields alone: built-in kinds have no texts here. */
const fieldsOf = (text: string): string => text.replace(/^(?!.*\t<|[A-Z]+: |error).*\n/gm, '')

/** What differs still, by the beginning of the line, and why. One that is the same by now fails: it is to be taken off. */
const known: Readonly<Record<string, string>> = {
  'get deployment web --subresource=scale': 'a scale has no columns of its own',
  'patch deployment web -p {"spec":{"replicas":"many"}}': 'the words of a strategic merge patch that does not fit',
  'apply --validate=strict -f BOAT': 'the words before `strict decoding error` for a custom kind',
  "create cronjob two --image=x --schedule='never' -- true": 'quotes in the words of a wrong schedule',
  'create priorityclass system-nothing --value=10': 'names of priority classes are not reserved',
}

withKubectl(
  'on a real server, too',
  of => {
    it('prints the same', async () => {
      const ours = of()
      const real = ours.at(inject('kubeconfig'))
      const { namespace } = ours
      await real.ok(`create namespace ${namespace}`)
      const group = `${namespace}.sea.example.com`
      const file = (name: string, text: string) => ours.file(`same-${name}.yaml`, text)
      const web = file('web', deployment('web'))
      const dinghy = file('dinghy', boat(group, 'dinghy'))
      const lines: string[] = [
        `apply -f ${web}`,
        `apply -f ${web}`,
        `diff -f ${file('web2', deployment('web', 'web:2'))}`,
        `apply --dry-run=server -f ${file('web2', deployment('web', 'web:2'))}`,
        `apply -f ${file('web2', deployment('web', 'web:2'))}`,
        `create -f ${web}`,
        'get deployments',
        'get deployments -o wide',
        'get deployment web -o yaml --show-managed-fields',
        'describe deployment web',
        'scale deployment web --replicas=3',
        'scale deployment web --replicas=-1',
        'scale deployment web --current-replicas=1 --replicas=2',
        'get deployment web --subresource=scale',
        'get deployment web --subresource=status -o yaml',
        'set image deployment/web main=web:3 other=x',
        'set image deployment/web main=web:3',
        'set env deployment/web A=b',
        'set resources deployment/web --limits=cpu=1,memory=1Gi',
        'rollout history deployment/web',
        'rollout undo deployment/web',
        'rollout pause deployment/web',
        'rollout resume deployment/web',
        'patch deployment web --type=json -p [{"op":"remove","path":"/spec/nothing"}]',
        'patch deployment web --type=merge -p {"spec":{"selector":{"matchLabels":{"app":"other"}}}}',
        'patch deployment web -p {"spec":{"template":{"spec":{"containers":[{"name":"main","image":""}]}}}}',
        'patch deployment web -p {"spec":{"replicas":"many"}}',
        'patch deployment other -p {}',
        `apply --server-side -f ${web}`,
        `apply --server-side --field-manager=another -f ${file('web9', deployment('web', 'web:9', 9))}`,
        `apply --server-side --field-manager=another --force-conflicts -f ${file('web9', deployment('web', 'web:9', 9))}`,
        'get deployment web -o yaml',
        `apply --validate=strict -f ${file('wrong', deployment('wrong').replace('replicas', 'replcas'))}`,
        `apply --validate=warn --dry-run=server -f ${file('wrong', deployment('wrong').replace('replicas', 'replcas'))}`,
        `apply -f ${file('bad', deployment('Bad_Name'))}`,
        `apply -f ${file('service', service('web'))}`,
        'get services -o wide',
        'get service web -o yaml',
        `apply -f ${file('service2', service('web').replace('port: 80', 'port: 80000'))}`,
        `diff -f ${file('service3', service('web').replace('port: 80', 'port: 81'))}`,
        'expose deployment web --name=exposed --port=80 --target-port=8080',
        `apply -f ${file('boats', boats(group))}`,
        `wait --for=condition=Established crd/boats.${group}`,
        `get crd boats.${group} -o jsonpath={.status.acceptedNames}`,
        `api-resources --api-group=${group}`,
        `apply -f ${dinghy}`,
        `apply -f ${dinghy}`,
        `get boats.${group}`,
        `get boats.${group} -o wide`,
        `get boats.${group} dinghy -o yaml --show-managed-fields`,
        `describe boats.${group} dinghy`,
        `scale boats.${group} dinghy --replicas=5`,
        `apply --validate=strict -f ${file('boat2', boat(group, 'other').replace('captain', 'captian'))}`,
        `apply --validate=warn -f ${file('boat2', boat(group, 'other').replace('captain', 'captian'))}`,
        `apply -f ${file('boat3', boat(group, 'third').replace('oars: 2', 'oars: -2'))}`,
        `apply -f ${file('boat4', boat(group, 'fourth').replace('oars: 2', 'oars: many'))}`,
        `apply -f ${file('boat5', boat('nowhere.example.com', 'fifth'))}`,
        `patch boats.${group} dinghy -p {}`,
        `patch boats.${group} dinghy --type=merge -p {"spec":null}`,
        `patch boats.${group} dinghy --subresource=status --type=merge -p {"status":{"oars":1}}`,
        'create configmap one --from-literal=a=b',
        'create configmap one',
        'create configmap BAD',
        'describe configmap one',
        'label configmap one a=b',
        'label configmap one a=c',
        "label configmap one 'a=not valid'",
        'annotate configmap one x=y',
        'get configmap one -o yaml --show-managed-fields',
        'get configmaps -l a=b --show-labels',
        "get configmaps -l 'a in (b,c),!d' -o name",
        'get configmaps --field-selector metadata.name=one -o name',
        'get configmaps --field-selector spec.nothing=one',
        `replace -f ${file('replaced', configMap('one', { c: 'd' }))}`,
        `replace -f ${file('missing', configMap('missing', {}))}`,
        'create secret generic one --from-literal=a=b',
        'describe secret one',
        'create serviceaccount one',
        'create role one --verb=get,list --resource=pods,deployments.apps',
        `create rolebinding one --role=one --serviceaccount=${namespace}:one`,
        'describe role one',
        'describe rolebinding one',
        'get roles,rolebindings -o wide',
        `auth can-i list pods --as=system:serviceaccount:${namespace}:one`,
        `auth can-i delete pods --as=system:serviceaccount:${namespace}:one`,
        `get secrets --as=system:serviceaccount:${namespace}:one`,
        `get deployments --as=system:serviceaccount:${namespace}:one -o name`,
        'create job one --image=x -- true',
        'get jobs -o wide',
        "create cronjob one --image=x --schedule='*/5 * * * *' -- true",
        "create cronjob two --image=x --schedule='never' -- true",
        'get cronjobs -o wide',
        'describe cronjob one',
        'create poddisruptionbudget one --selector=app=x --min-available=1',
        'get poddisruptionbudgets',
        'describe poddisruptionbudget one',
        'create ingress one --rule=a.example.com/=one:80',
        'get ingresses',
        'describe ingress one',
        'create quota one --hard=pods=3',
        'create priorityclass system-nothing --value=10',
        'create clusterrole BAD:ok --verb=get --resource=pods --dry-run=server',
        `describe namespace ${namespace}`,
        'get all -o name',
        'get nothing',
        'get deployments.nowhere.example.com',
        'get deployment/web service/web configmap/one -o name',
        'delete configmap one --dry-run=server',
        'delete configmap one',
        'delete configmap one',
        'delete services --all',
        `delete boats.${group} --all --cascade=orphan --wait=false`,
        'top pods',
        'api-resources --api-group=apps',
        'api-resources --api-group=batch -o wide',
      ]
      const explained = [
        'deployment',
        'pod.spec.affinity',
        'statefulset.spec',
        'cronjob.spec.jobTemplate',
        'role',
        'crd.spec.names',
      ]
      const differences: string[] = []
      const words = (line: string) =>
        line
          .replace(/\S+same-boat2\.yaml/, 'BOAT')
          .replace(/\S+same-boat3\.yaml/, 'NEGATIVE')
          .replace(/\S+same-boat4\.yaml/, 'MANY')
      const compare = async (line: string, cleaned: (text: string) => string) => {
        const args = [...line.matchAll(/(?:'[^']*'|[^\s'])+/g)].map(([word]) => word.replaceAll("'", ''))
        const [mine, theirs] = await Promise.all([ours.run(args), real.run(args)])
        const shown = ({ code, stdout, stderr }: typeof mine) =>
          `exit code ${code}\n${cleaned(stdout)}${cleaned(stderr)}`
        const [here, there] = [shown(mine), shown(theirs)]
        const why = known[words(line)]
        if (why !== undefined && here === there) differences.push(`kubectl ${line} is the same by now: ${why}`)
        if (why === undefined && here !== there)
          differences.push(`kubectl ${line}\n--- here\n${here}\n--- there\n${there}`)
      }
      for (const line of lines) await compare(line, normal)
      // A real server describes a new kind only after a while.
      const served = ['explain', 'boats', `--api-version=${group}/v1`]
      await expect.poll(() => real.run(served), { timeout: 60_000 }).toMatchObject({ code: 0 })
      for (const what of ['spec', 'spec --recursive', 'spec.nothing'])
        await compare(`explain boats.${what} --api-version=${group}/v1`, normal)
      for (const what of explained)
        for (const how of ['', ' --recursive']) await compare(`explain ${what}${how}`, fieldsOf)
      expect(differences.join('\n\n')).toBe('')
    }, 300_000)
  },
  { listen: true },
)
