/** Objects: how they are made, changed and deleted. */
import { expect } from 'vitest'
import { type Case, configMap, deployment, pod } from './case.ts'
import { patches } from './servers.ts'

export const objects: readonly Case[] = [
  {
    name: 'a new object has a uid, a version and a time; one with the same name is refused',
    async run({ ask, core, namespace }) {
      const made = await ask(`POST ${core}/configmaps`, configMap('a'))
      expect(made.status).toBe(201)
      expect(made.body.metadata).toMatchObject({
        name: 'a',
        namespace,
        uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        resourceVersion: expect.stringMatching(/^\d+$/),
      })
      expect(made.body.metadata.generation).toBeUndefined()
      const again = await ask(`POST ${core}/configmaps`, configMap('a'))
      expect([again.status, again.body.reason, again.body.message]).toEqual([
        409,
        'AlreadyExists',
        'configmaps "a" already exists',
      ])
    },
  },
  {
    name: 'an update of an old version is refused, and changes nothing',
    async run({ ask, core }) {
      const { body } = await ask(`POST ${core}/configmaps`, configMap('a'))
      expect((await ask(`PUT ${core}/configmaps/a`, { ...body, data: { a: '2' } })).status).toBe(200)
      const late = await ask(`PUT ${core}/configmaps/a`, { ...body, data: { a: '3' } })
      expect([late.status, late.body.reason]).toEqual([409, 'Conflict'])
      expect(late.body.message).toBe(
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
      )
      expect((await ask(`GET ${core}/configmaps/a`)).body.data).toEqual({ a: '2' })
    },
  },
  {
    name: 'an update that changes nothing leaves the version as it is',
    async run({ ask, core }) {
      const { body } = await ask(`POST ${core}/configmaps`, configMap('a'))
      const same = await ask(`PUT ${core}/configmaps/a`, body)
      expect(same.body.metadata.resourceVersion).toBe(body.metadata.resourceVersion)
    },
  },
  {
    name: 'generation counts changes of the spec, not of metadata or status',
    async run({ ask, namespace }) {
      const path = `/apis/apps/v1/namespaces/${namespace}/deployments`
      const generation = async (line: string, body: unknown) =>
        (await ask(line, body, { type: patches.merge })).body.metadata.generation
      expect((await ask(`POST ${path}`, deployment('d'))).body.metadata.generation).toBe(1)
      expect(await generation(`PATCH ${path}/d`, { metadata: { labels: { x: 'y' } } })).toBe(1)
      expect(await generation(`PATCH ${path}/d/status`, { status: { replicas: 1 } })).toBe(1)
      expect(await generation(`PATCH ${path}/d`, { spec: { replicas: 3 } })).toBe(2)
    },
  },
  {
    name: 'generateName makes names that are free',
    async run({ ask, core }) {
      const names = await Promise.all(
        [1, 2, 3].map(
          async () => (await ask(`POST ${core}/configmaps`, { metadata: { generateName: 'x-' } })).body.metadata.name,
        ),
      )
      for (const name of names) expect(name).toMatch(/^x-[a-z0-9]{5}$/)
      expect(new Set(names).size).toBe(3)
    },
  },
  {
    name: 'an object with a finalizer is marked, stays, takes no new finalizers, and goes with the last one',
    async run({ ask, core }) {
      await ask(`POST ${core}/configmaps`, configMap('a', { finalizers: ['example.com/hold'] }))
      const marked = await ask(`DELETE ${core}/configmaps/a`)
      expect(marked.status).toBe(200)
      expect(marked.body.metadata).toMatchObject({
        deletionTimestamp: expect.any(String),
        deletionGracePeriodSeconds: 0,
      })
      const more = await ask(
        `PATCH ${core}/configmaps/a`,
        { metadata: { finalizers: ['example.com/hold', 'example.com/more'] } },
        { type: patches.merge },
      )
      expect(more.status).toBe(422)
      expect(more.body.message).toContain(
        'no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/more"}',
      )
      expect(
        (await ask(`PATCH ${core}/configmaps/a`, { metadata: { finalizers: null } }, { type: patches.merge })).status,
      ).toBe(200)
      expect((await ask(`GET ${core}/configmaps/a`)).status).toBe(404)
    },
  },
  {
    name: 'a deletion with preconditions is refused where they do not hold',
    async run({ ask, core }) {
      const { body } = await ask(`POST ${core}/configmaps`, configMap('a'))
      const wrong = await ask(`DELETE ${core}/configmaps/a`, { preconditions: { uid: 'other' } })
      expect([wrong.status, wrong.body.reason]).toEqual([409, 'Conflict'])
      expect(wrong.body.message).toContain(
        `the UID in the precondition (other) does not match the UID in record (${body.metadata.uid})`,
      )
      expect((await ask(`DELETE ${core}/configmaps/a`, { preconditions: { uid: body.metadata.uid } })).status).toBe(200)
    },
  },
  {
    name: 'propagation policies become finalizers for the garbage collector',
    async run({ ask, core }) {
      for (const [policy, finalizer] of [
        ['Foreground', 'foregroundDeletion'],
        ['Orphan', 'orphan'],
      ]) {
        await ask(`POST ${core}/configmaps`, configMap('a'))
        const { body } = await ask(`DELETE ${core}/configmaps/a`, { propagationPolicy: policy })
        expect(body.metadata.finalizers).toEqual([finalizer])
        await ask(`PATCH ${core}/configmaps/a`, { metadata: { finalizers: null } }, { type: patches.merge })
      }
      await ask(`POST ${core}/configmaps`, configMap('a'))
      const gone = await ask(`DELETE ${core}/configmaps/a`, { propagationPolicy: 'Background' })
      expect(gone.body).toMatchObject({ kind: 'Status', status: 'Success', details: { name: 'a', kind: 'configmaps' } })
    },
  },
  {
    name: 'nothing is made in a namespace that is not there, or is going',
    async run({ ask, namespace }) {
      const none = await ask('POST /api/v1/namespaces/nowhere/configmaps', configMap('a'))
      expect([none.status, none.body.message]).toEqual([404, 'namespaces "nowhere" not found'])
      await ask('POST /api/v1/namespaces', {
        metadata: { name: `${namespace}-going`, finalizers: ['example.com/hold'] },
      })
      await ask(`DELETE /api/v1/namespaces/${namespace}-going`)
      const late = await ask(`POST /api/v1/namespaces/${namespace}-going/configmaps`, configMap('a'))
      expect([late.status, late.body.reason]).toEqual([403, 'Forbidden'])
      expect(late.body.message).toBe(
        `configmaps "a" is forbidden: unable to create new content in namespace ${namespace}-going because it is being terminated`,
      )
    },
  },
  {
    name: 'a dry run answers what would be, and leaves nothing',
    async run({ ask, core }) {
      const made = await ask(`POST ${core}/configmaps?dryRun=All`, configMap('a'))
      expect([made.status, made.body.metadata.name]).toEqual([201, 'a'])
      expect((await ask(`GET ${core}/configmaps/a`)).status).toBe(404)
    },
  },
  {
    name: 'unknown fields are dropped and told, or refused, or neither, as the caller wishes',
    async run({ ask, core }) {
      const odd = { ...configMap('a'), odd: 1 }
      const warned = await ask(`POST ${core}/configmaps`, odd)
      expect([warned.status, warned.warnings, warned.body.odd]).toEqual([201, ['unknown field "odd"'], undefined])
      const strict = await ask(`POST ${core}/configmaps?fieldValidation=Strict`, odd)
      expect([strict.status, strict.body.message]).toEqual([
        400,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "odd"',
      ])
      const ignored = await ask(`PUT ${core}/configmaps/a?fieldValidation=Ignore`, odd)
      expect([ignored.status, ignored.warnings]).toEqual([200, []])
    },
  },
  {
    name: 'applied fields belong to who applied them: another is refused, unless it insists',
    async run({ ask, core }) {
      const apply = (manager: string, data: object, more = '') =>
        ask(
          `PATCH ${core}/configmaps/a?fieldManager=${manager}${more}`,
          { ...configMap('a'), data },
          { type: patches.apply },
        )
      expect((await apply('one', { a: '1', b: '1' })).status).toBe(201)
      const refused = await apply('two', { a: '2' })
      expect([refused.status, refused.body.reason]).toEqual([409, 'Conflict'])
      expect(refused.body.message).toBe('Apply failed with 1 conflict: conflict with "one": .data.a')
      expect(refused.body.details.causes).toEqual([
        { reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.data.a' },
      ])
      expect((await apply('two', { a: '2' }, '&force=true')).body.data).toEqual({ a: '2', b: '1' })
      expect((await apply('one', {})).body.data).toEqual({ a: '2' })
    },
  },
  {
    name: 'a strategic merge patch merges containers by name; a merge patch replaces them',
    async run({ ask, namespace }) {
      const path = `/apis/apps/v1/namespaces/${namespace}/deployments`
      await ask(`POST ${path}`, deployment('d'))
      const patch = { spec: { template: { spec: { containers: [{ name: 'e', image: 'j' }] } } } }
      const names = (body: { spec: { template: { spec: { containers: { name: string }[] } } } }) =>
        body.spec.template.spec.containers.map(({ name }) => name)
      expect(names((await ask(`PATCH ${path}/d`, patch, { type: patches.strategic })).body)).toEqual(['e', 'c'])
      expect(names((await ask(`PATCH ${path}/d`, patch, { type: patches.merge })).body)).toEqual(['e'])
      const wrong = await ask(`PATCH ${path}/d`, [{ op: 'test', path: '/metadata/name', value: 'x' }], {
        type: patches.json,
      })
      expect(wrong.status).toBe(422)
      expect((await ask(`PATCH ${path}/d`, {}, { type: 'application/json' })).status).toBe(415)
    },
  },
  {
    name: 'scale reads and writes replicas alone',
    async run({ ask, namespace }) {
      const path = `/apis/apps/v1/namespaces/${namespace}/deployments`
      await ask(`POST ${path}`, deployment('d'))
      const scale = await ask(`GET ${path}/d/scale`)
      expect(scale.body).toMatchObject({
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        spec: { replicas: 2 },
        status: { replicas: 0, selector: 'app=d' },
      })
      expect((await ask(`PUT ${path}/d/scale`, { ...scale.body, spec: { replicas: 5 } })).status).toBe(200)
      expect((await ask(`GET ${path}/d`)).body.spec.replicas).toBe(5)
    },
  },
  {
    name: 'an eviction deletes a pod, or is refused by a budget',
    async run({ ask, core, namespace }) {
      await ask(`POST ${core}/pods`, pod('p', { labels: { app: 'x' } }))
      await ask(
        `PATCH ${core}/pods/p/status`,
        { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } },
        { type: patches.merge },
      )
      const budgets = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`
      await ask(`POST ${budgets}`, {
        metadata: { name: 'b' },
        spec: { minAvailable: 1, selector: { matchLabels: { app: 'x' } } },
      })
      await ask(
        `PATCH ${budgets}/b/status`,
        {
          status: {
            observedGeneration: 1,
            currentHealthy: 1,
            desiredHealthy: 1,
            expectedPods: 1,
            disruptionsAllowed: 0,
          },
        },
        { type: patches.merge },
      )
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' } }
      const refused = await ask(`POST ${core}/pods/p/eviction`, eviction)
      expect([refused.status, refused.body.reason]).toEqual([429, 'TooManyRequests'])
      expect(refused.body.message).toBe("Cannot evict pod as it would violate the pod's disruption budget.")
      expect(refused.body.details.causes).toEqual([
        { reason: 'DisruptionBudget', message: 'The disruption budget b needs 1 healthy pods and has 1 currently' },
      ])
      await ask(`DELETE ${budgets}/b`)
      expect((await ask(`POST ${core}/pods/p/eviction`, eviction)).status).toBe(201)
      expect((await ask(`GET ${core}/pods/p`)).status).toBe(404)
    },
  },
]
