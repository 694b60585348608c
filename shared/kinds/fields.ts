/**
 * Fields that several of Shipmate's kinds have, each described once.
 */
import { z } from 'zod'
import { durationPattern } from '../duration.ts'

/** `30s`, `1h30m`. */
export const duration = z.string().min(2).max(32).regex(durationPattern)
export const time = z.iso.datetime()
export const uid = z.string().min(1).max(128)
/** The name of an object in the same namespace. */
export const objectName = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
/** The name of a state, an action or a probe. */
export const word = z
  .string()
  .min(1)
  .max(63)
  .regex(/^[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?$/)
const paramName = z
  .string()
  .min(1)
  .max(63)
  .regex(/^[A-Za-z_][A-Za-z0-9_.-]*$/)

/** Any JSON under any name. */
export const params = z
  .record(z.string(), z.unknown())
  .describe('The parameters of the action, as its declaration says. Never a secret: that comes by paramsFrom.')

export const paramsFrom = z
  .array(
    z.object({
      name: paramName.describe('The parameter that it is.'),
      secretKeyRef: z
        .object({
          name: objectName.describe('A Secret in the same namespace, with the label shipmate.dev/params: "true".'),
          key: z
            .string()
            .min(1)
            .max(253)
            .regex(/^[-._a-zA-Z0-9]+$/)
            .describe('Which of its keys.'),
        })
        .describe('Where the value is read, when it is sent.'),
    }),
  )
  .max(64)
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
  .describe('Parameters that come from Secrets. A secret (writeOnly) parameter comes in no other way.')

/** Names that are part of other objects' names and of labels' values: a DNS label. */
export function nameRules(kind: string, longest: number) {
  return [
    {
      rule: `size(self.metadata.name) <= ${longest}`,
      message: `the name of ${kind} has at most ${longest} characters: it is part of other names`,
    },
    {
      rule: "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
      message: `the name of ${kind} is a DNS label: lower case letters, digits and "-", no dot`,
    },
  ] as const
}
