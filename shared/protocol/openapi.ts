/**
 * The protocol as an OpenAPI 3.1 document, from the same table and schemas that the server uses. Pure; made anew at each call.
 */
import * as z from 'zod/mini'
import { type ProblemCode, problems } from './problems.ts'
import { type Answer, actionList, type Route, refusals, routes, runList } from './routes.ts'
import * as schemas from './schemas.ts'

/** Schemas with a name of their own in the document. */
const named = {
  PodState: schemas.podState,
  ProbeState: schemas.probeState,
  Run: schemas.run,
  Progress: schemas.progress,
  PutRun: schemas.putRun,
  Settle: schemas.settle,
  VerifyRun: schemas.verify,
  Verdict: schemas.verdict,
  ActionView: schemas.actionView,
  Features: schemas.features,
  Message: schemas.message,
  ActionList: actionList,
  RunList: runList,
}

type Json = Record<string, unknown>

const problemSchema = {
  type: 'object',
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    code: { type: 'string', enum: Object.keys(problems) },
  },
  required: ['type', 'title', 'status', 'detail', 'code'],
}

const podHeader = {
  name: 'Shipmate-Pod-Uid',
  in: 'header',
  description: 'The uid of the pod that is meant. Required with `--auth mtls`.',
  schema: { type: 'string' },
}

export function openapi(version: string): Json {
  const paths: Record<string, Json> = {}
  for (const [name, route] of Object.entries(routes)) {
    const path = paths[route.path] ?? {}
    path[route.method] = operation(name, route)
    if (route.method === 'get') path.head = operation(name.replace('get', 'head'), headOf(route))
    paths[route.path] = path
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Shipmate sidecar',
      version,
      description: 'The state of an application in its pod, and the runs of its declared actions.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    security: [{ mutualTLS: [] }, { bearer: [] }, {}],
    paths,
    components: {
      securitySchemes: {
        mutualTLS: { type: 'mutualTLS', description: 'The certificate of controller.shipmate.dev.' },
        bearer: { type: 'http', scheme: 'bearer' },
      },
      schemas: { ...components(), Problem: problemSchema },
    },
  }
}

function operation(operationId: string, route: Route): Json {
  const query = Object.entries(route.query ?? {}).map(([name, { schema, description }]) => {
    return { name, in: 'query', description, schema: bare(z.toJSONSchema(schema)) }
  })
  const id = { name: 'id', in: 'path', required: true, schema: bare(z.toJSONSchema(schemas.runId)) }
  return {
    operationId,
    summary: route.summary,
    parameters: [...(route.path.includes('{id}') ? [id] : []), ...query, podHeader],
    ...(route.body
      ? { requestBody: { required: true, content: { 'application/json': { schema: reference(route.body) } } } }
      : {}),
    responses: { ...answers(route), ...refused(route) },
  }
}

/** HEAD is GET without a body. */
const headOf = (route: Route): Route => ({
  ...route,
  answers: Object.fromEntries(
    Object.entries(route.answers).map(([status, { description, headers }]) => [
      status,
      { description, ...(headers ? { headers } : {}) },
    ]),
  ),
})

function answers(route: Route): Json {
  const described = ({ description, schema, type, headers }: Answer): Json => ({
    description,
    ...(headers
      ? {
          headers: Object.fromEntries(
            Object.entries(headers).map(([name, text]) => [name, { description: text, schema: { type: 'integer' } }]),
          ),
        }
      : {}),
    ...(schema ? { content: { 'application/json': { schema: reference(schema) } } } : {}),
    ...(type ? { content: { [type]: { schema: { type: 'string' } } } } : {}),
  })
  return Object.fromEntries(Object.entries(route.answers).map(([status, answer]) => [status, described(answer)]))
}

/** One entry per status, with all the codes that it may stand for. */
function refused(route: Route): Json {
  const codes = new Set<ProblemCode>([...refusals, ...route.problems])
  const byStatus = Map.groupBy(codes, code => problems[code].status)
  return Object.fromEntries(
    [...byStatus].map(([status, all]) => {
      const schema = {
        allOf: [
          { $ref: '#/components/schemas/Problem' },
          { properties: { code: { enum: all }, status: { const: status } } },
        ],
      }
      const description = all.map(code => `\`${code}\`: ${problems[code].title}.`).join(' ')
      const headers = status === 405 ? { headers: { Allow: { schema: { type: 'string' } } } } : {}
      return [status, { description, ...headers, content: { 'application/problem+json': { schema } } }]
    }),
  )
}

function components(): Json {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id })
  const { schemas: made } = z.toJSONSchema(registry, { uri: place })
  return Object.fromEntries(Object.entries(made).map(([id, schema]) => [id, bare(schema)]))
}

const place = (id: string) => `#/components/schemas/${id}`

function reference(schema: z.core.$ZodType): Json {
  const known = Object.entries(named).find(([, other]) => other === schema)
  return known ? { $ref: place(known[0]) } : bare(z.toJSONSchema(schema))
}

function bare(schema: object): Json {
  const { $schema: _dialect, $id: _id, ...rest } = schema as Json
  return rest
}
