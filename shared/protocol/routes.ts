/**
 * The sidecar's protocol as one table: each call with its path, query, body, answers and refusals.
 *
 * Guarantee: the server registers its routes from this table and `/openapi.json` is written from it, so none exists that is not documented.
 */
import * as z from 'zod/mini'
import type { ProblemCode } from './problems.ts'
import { actionView, duration, features, podState, putRun, run, runId, settle, verdict, verify } from './schemas.ts'

/** The piece of a log that is answered when no limit is given, and the longest, in bytes. */
export const usualPiece = 64 * 1024
export const longestPiece = 1024 * 1024

/** A parameter of the query. */
export interface QueryParameter {
  readonly schema: z.core.$ZodType
  readonly description: string
  /** The text as what the schema expects; what cannot be read is left to the schema to refuse. */
  readonly read: (text: string) => unknown
}

export interface Answer {
  readonly description: string
  /** Absent: no body, or (with `type`) text. */
  readonly schema?: z.core.$ZodType
  /** Default `application/json` where there is a schema. */
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Route {
  readonly method: 'get' | 'put' | 'post' | 'delete'
  /** As OpenAPI writes it. The one parameter there is, `{id}`, is a run's id. */
  readonly path: string
  readonly summary: string
  readonly query?: Readonly<Record<string, QueryParameter>>
  readonly body?: z.core.$ZodType
  readonly answers: Readonly<Record<number, Answer>>
  /** Refusals of this call alone; those of every call are in `refusals`. */
  readonly problems: readonly ProblemCode[]
}

const text = (schema: z.core.$ZodType, description: string): QueryParameter => ({
  schema,
  description,
  read: value => value,
})
const number = (schema: z.core.$ZodType, description: string): QueryParameter => ({
  schema,
  description,
  read: value => (/^\d{1,16}$/.test(value) ? Number(value) : value),
})

const cursor = z.string()
const wholeNumber = z.int().check(z.gte(0))
const since = text(cursor, 'A cursor, as a state or a message carries it.')
const wait = text(duration, 'How long the call is held at most, as `30s`. 60 s if it is more.')

export const actionList = z.strictObject({ actions: z.array(actionView) })
export const runList = z.strictObject({ runs: z.array(run) })

const ofRun = { description: 'The run as it stands.', schema: run }

export const routes = {
  getState: {
    method: 'get',
    path: '/v1/state',
    summary: 'The state of the app in this pod; with `since` and `wait`, held until there is something newer',
    query: { since, wait },
    answers: { 200: { description: 'The state.', schema: podState } },
    problems: [],
  },
  getActions: {
    method: 'get',
    path: '/v1/actions',
    summary: 'The declared actions, with the schemas of their parameters',
    answers: { 200: { description: 'The actions.', schema: actionList } },
    problems: [],
  },
  getFeatures: {
    method: 'get',
    path: '/v1/features',
    summary: 'What this sidecar can do',
    answers: { 200: { description: 'The features.', schema: features } },
    problems: [],
  },
  getRuns: {
    method: 'get',
    path: '/v1/runs',
    summary: 'The runs, newest first',
    answers: { 200: { description: 'The runs.', schema: runList } },
    problems: [],
  },
  getRun: {
    method: 'get',
    path: '/v1/runs/{id}',
    summary: 'A run; with `wait`, held until it has ended or is Unknown',
    query: { wait },
    answers: { 200: ofRun },
    problems: ['UnknownRun'],
  },
  putRun: {
    method: 'put',
    path: '/v1/runs/{id}',
    summary: 'Starts a run; the same id with the same body is answered with the run as it stands',
    body: putRun,
    answers: {
      200: { ...ofRun, description: 'Known: the run as it stands.' },
      201: { ...ofRun, description: 'Started.' },
    },
    problems: [
      'TooLarge',
      'UnknownField',
      'WrongPod',
      'IdReused',
      'Draining',
      'WrongJournal',
      'Fenced',
      'WrongConfig',
      'UnknownAction',
      'InvalidParams',
      'Locked',
      'TooManyRequests',
      'JournalFull',
    ],
  },
  deleteRun: {
    method: 'delete',
    path: '/v1/runs/{id}',
    summary: 'Says that the outcome is known, so that the run may be forgotten',
    answers: { 204: { description: 'Dropped.' } },
    problems: ['UnknownRun', 'InProgress', 'JournalFull'],
  },
  cancelRun: {
    method: 'post',
    path: '/v1/runs/{id}/cancel',
    summary: 'Begins the cancel contract of a run',
    answers: {
      200: { ...ofRun, description: 'It had ended, or is Unknown.' },
      202: { ...ofRun, description: 'Begun.' },
    },
    problems: ['UnknownRun'],
  },
  settleRun: {
    method: 'post',
    path: '/v1/runs/{id}/settle',
    summary: "A person's word on an Unknown run",
    body: settle,
    answers: { 200: ofRun },
    problems: ['TooLarge', 'UnknownField', 'UnknownRun', 'NotUnknown', 'JournalFull'],
  },
  verify: {
    method: 'post',
    path: '/v1/verify',
    summary: "Executes an action's verify, for a run that need not be known here",
    body: verify,
    answers: { 200: { description: 'What verify says.', schema: verdict } },
    problems: [
      'TooLarge',
      'UnknownField',
      'UnknownAction',
      'InvalidParams',
      'Locked',
      'TooManyRequests',
      'JournalFull',
    ],
  },
  getLog: {
    method: 'get',
    path: '/v1/runs/{id}/log',
    summary: 'A piece of the log of a run, from the first kept byte at or after `offset`',
    query: {
      offset: number(wholeNumber, 'In bytes. Default 0.'),
      limit: number(z.int().check(z.gte(1)), 'The longest piece, in bytes. Default 65536; 1048576 if it is more.'),
    },
    answers: {
      200: {
        description: 'The piece; empty at the end.',
        type: 'text/plain; charset=utf-8',
        headers: { 'Shipmate-Log-Offset': 'Where the piece begins.', 'Shipmate-Log-Next': 'Where to go on.' },
      },
    },
    problems: ['UnknownRun'],
  },
  getEvents: {
    method: 'get',
    path: '/v1/events',
    summary: 'A WebSocket of messages: none lost and none twice from `since` on, else a reset and what follows',
    query: {
      since,
      log: text(runId, 'Send the log of this run, too, and follow it.'),
      offset: number(wholeNumber, 'Where the log begins, in bytes. Default 0.'),
    },
    answers: { 101: { description: 'Each message is a `Message` as JSON.' } },
    problems: ['UnknownRun'],
  },
  getOpenapi: {
    method: 'get',
    path: '/openapi.json',
    summary: 'This document',
    answers: { 200: { description: 'OpenAPI 3.1.', schema: z.record(z.string(), z.unknown()) } },
    problems: [],
  },
} as const satisfies Record<string, Route>

export type RouteName = keyof typeof routes

/** What every call may be refused with, in the order in which it is checked. */
export const refusals = [
  'Unauthorized',
  'Forbidden',
  'WrongPod',
  'NotFound',
  'MethodNotAllowed',
  'TooLarge',
  'InvalidBody',
  'Unavailable',
] as const satisfies readonly ProblemCode[]

type Field<Name extends RouteName, Key extends string> =
  (typeof routes)[Name] extends Readonly<Record<Key, infer Value>> ? Value : undefined

/** The body of a call, checked. */
export type BodyOf<Name extends RouteName> =
  Field<Name, 'body'> extends z.core.$ZodType ? z.infer<Field<Name, 'body'>> : undefined

/** The query of a call, checked. */
export interface Query {
  readonly since?: string
  readonly wait?: string
  readonly log?: string
  readonly offset?: number
  readonly limit?: number
}
