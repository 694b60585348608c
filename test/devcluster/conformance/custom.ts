/** Custom resources. */
import { expect, vi } from 'vitest'
import type { Case, World } from './case.ts'
import { definition } from './kinds.ts'
import { patches } from './servers.ts'

const gears = ({ namespace }: World) => `/apis/conformance.example/v1/namespaces/${namespace}/gears`
const gear = (spec: object) => ({ apiVersion: 'conformance.example/v1', kind: 'Gear', metadata: { name: 'g' }, spec })

async function define({ ask }: World, crd: { metadata: { name: string } }, path: string): Promise<void> {
  await ask('POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd)
  await vi.waitFor(async () => expect((await ask(`GET ${path}`)).status).toBe(200), { timeout: 30_000, interval: 100 })
}

export const custom: readonly Case[] = [
  {
    name: 'a definition that is taken is established and served',
    async run(world) {
      await define(world, definition, gears(world))
      const { body } = await world.ask(
        `GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/${definition.metadata.name}`,
      )
      expect(body.status.acceptedNames).toEqual({
        plural: 'gears',
        singular: 'gear',
        kind: 'Gear',
        listKind: 'GearList',
        shortNames: ['gr'],
      })
      expect(
        body.status.conditions.map(({ type, status }: { type: string; status: string }) => `${type}=${status}`).sort(),
      ).toEqual(['Established=True', 'NamesAccepted=True'])
      expect(body.status.storedVersions).toEqual(['v1'])
    },
  },
  {
    name: 'unknown fields are pruned, defaults filled in, mistakes told by field',
    async run(world) {
      await define(world, definition, gears(world))
      const made = await world.ask(`POST ${gears(world)}`, gear({ teeth: 5, odd: 1, extra: { any: 1 } }))
      expect(made.body.spec).toEqual({ teeth: 5, replicas: 1, colour: 'red', size: { width: 1.5 }, extra: { any: 1 } })
      expect(made.warnings).toEqual(['unknown field "spec.odd"'])
      const wrong = await world.ask(`POST ${gears(world)}`, gear({ teeth: 1, colour: 'blue' }))
      expect(wrong.status).toBe(422)
      expect(wrong.body.details.causes).toEqual(
        expect.arrayContaining([
          {
            reason: 'FieldValueInvalid',
            message: 'Invalid value: 1: spec.teeth in body should be greater than or equal to 3',
            field: 'spec.teeth',
          },
          {
            reason: 'FieldValueNotSupported',
            message: 'Unsupported value: "blue": supported values: "red", "green"',
            field: 'spec.colour',
          },
        ]),
      )
    },
  },
  {
    name: 'rules are checked, those about a change against what was',
    async run(world) {
      await define(world, definition, gears(world))
      const green = await world.ask(`POST ${gears(world)}`, gear({ teeth: 5, colour: 'green' }))
      expect(green.body.message).toBe(
        'Gear.conformance.example "g" is invalid: spec: Invalid value: a green gear has more than 10 teeth',
      )
      await world.ask(`POST ${gears(world)}`, gear({ teeth: 20 }))
      const less = await world.ask(`PATCH ${gears(world)}/g`, { spec: { teeth: 10 } }, { type: patches.merge })
      expect(less.body.message).toBe(
        'Gear.conformance.example "g" is invalid: spec: Invalid value: teeth do not grow back',
      )
    },
  },
  {
    name: 'status is written by its subresource alone, and scale by its own',
    async run(world) {
      await define(world, definition, gears(world))
      const path = gears(world)
      await world.ask(`POST ${path}`, { ...gear({ teeth: 5 }), status: { phase: 'x' } })
      expect((await world.ask(`GET ${path}/g`)).body.status).toBeUndefined()
      const written = await world.ask(
        `PATCH ${path}/g/status`,
        { spec: { teeth: 50 }, status: { phase: 'y' } },
        { type: patches.merge },
      )
      expect([written.body.spec.teeth, written.body.status, written.body.metadata.generation]).toEqual([
        5,
        { phase: 'y' },
        1,
      ])
      await world.ask(`PATCH ${path}/g/scale`, { spec: { replicas: 4 } }, { type: patches.merge })
      expect((await world.ask(`GET ${path}/g`)).body).toMatchObject({
        spec: { replicas: 4 },
        metadata: { generation: 2 },
      })
    },
  },
  {
    name: 'its columns are in tables, its selectable fields in selectors',
    async run(world) {
      await define(world, definition, gears(world))
      await world.ask(`POST ${gears(world)}`, gear({ teeth: 5 }))
      const { body } = await world.ask(`GET ${gears(world)}`, undefined, {
        accept: 'application/json;as=Table;g=meta.k8s.io;v=v1',
      })
      expect(body.columnDefinitions.map(({ name }: { name: string }) => name)).toEqual(['Name', 'Teeth', 'Age'])
      expect(body.rows[0].cells.slice(0, 2)).toEqual(['g', 5])
      expect((await world.ask(`GET ${gears(world)}?fieldSelector=spec.colour%3Dred`)).body.items).toHaveLength(1)
      expect((await world.ask(`GET ${gears(world)}?fieldSelector=spec.colour%3Dgreen`)).body.items).toEqual([])
    },
  },
  {
    name: 'a strategic merge patch is not for custom resources',
    async run(world) {
      await define(world, definition, gears(world))
      await world.ask(`POST ${gears(world)}`, gear({ teeth: 5 }))
      const refused = await world.ask(`PATCH ${gears(world)}/g`, {}, { type: patches.strategic })
      expect([refused.status, refused.body.reason]).toEqual([415, 'UnsupportedMediaType'])
    },
  },
  {
    name: 'one object is seen in each version, converted by nothing but its apiVersion',
    async run(world) {
      const group = 'versions.conformance.example'
      const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
      const crd = {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: `cogs.${group}` },
        spec: {
          group,
          scope: 'Namespaced',
          names: { plural: 'cogs', kind: 'Cog' },
          versions: [
            { name: 'v1', served: true, storage: true, schema },
            { name: 'v1beta1', served: true, storage: false, deprecated: true, schema },
          ],
        },
      }
      const path = (version: string) => `/apis/${group}/${version}/namespaces/${world.namespace}/cogs`
      await define(world, crd, path('v1'))
      await world.ask(`POST ${path('v1')}`, {
        apiVersion: `${group}/v1`,
        kind: 'Cog',
        metadata: { name: 'c' },
        spec: { a: 1 },
      })
      const old = await world.ask(`GET ${path('v1beta1')}/c`)
      expect([old.body.apiVersion, old.body.spec]).toEqual([`${group}/v1beta1`, { a: 1 }])
      expect(old.warnings).toEqual([`${group}/v1beta1 Cog is deprecated; use ${group}/v1 Cog`])
    },
  },
  {
    name: 'a definition with a schema that is not structural is refused',
    async run({ ask }) {
      const spec = {
        ...definition.spec,
        names: { plural: 'bads', kind: 'Bad' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { properties: { a: {} } } } }],
      }
      const refused = await ask('POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
        ...definition,
        metadata: { name: 'bads.conformance.example' },
        spec,
      })
      expect(refused.status).toBe(422)
      expect(refused.body.details.causes.map(({ field }: { field: string }) => field)).toEqual(
        expect.arrayContaining([
          'spec.validation.openAPIV3Schema.properties[a].type',
          'spec.validation.openAPIV3Schema.type',
        ]),
      )
    },
  },
]
