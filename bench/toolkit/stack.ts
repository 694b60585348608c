/**
 * The object of the bench: an application of ten children, as the toolkit defines it. The Go program beside it works on the same CRD.
 */
import { defineCustomResource } from 'shipmate'
import { z } from 'zod'

export const Stack = defineCustomResource({
  group: 'bench.example.com',
  version: 'v1',
  kind: 'Stack',
  description: 'A web server, a worker and a store, with their settings.',
  spec: z.object({
    image: z.string().describe('What the web server and the worker run.'),
    replicas: z.int().min(0).default(2).describe('How many web servers there are.'),
    message: z.string().describe('What the web server says.'),
    password: z.string().describe('How the store is opened.'),
  }),
})
