/**
 * Local images: what runs in an image's stead, by its name.
 */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'
import { expand } from './expand.ts'
import type { ContainerSpec } from './spec.ts'

const imageSchema = z.strictObject({
  /** Its entry point. */
  command: z.array(z.string()).min(1),
  args: z.array(z.string()).optional(),
  env: z.record(z.string(), z.string()).optional(),
  /** Where it begins; in a file, relative to that file. Default: the root of the container's own tree. */
  cwd: z.string().optional(),
})
const fileSchema = z.strictObject({ images: z.record(z.string(), imageSchema) })

export type Image = z.infer<typeof imageSchema>
/** By name: with a tag or digest for that one, without for all. */
export type Images = Readonly<Record<string, Image>>

/** Reads a file `images: {NAME: {command: […], args, env, cwd}}`, YAML or JSON. Throws with what is wrong in it. */
export function readImages(file: string): Images {
  const { images } = fileSchema.parse(parse(readFileSync(file, 'utf8')))
  const folder = dirname(resolve(file))
  return Object.fromEntries(
    Object.entries(images).map(([name, image]) => [name, { ...image, cwd: resolve(folder, image.cwd ?? '.') }]),
  )
}

export function imageOf(images: Images, name: string): Image | undefined {
  const plain = name.replace(/@sha256:.*$/, '').replace(/:[^:/]*$/, '')
  for (const one of [name, plain]) if (Object.hasOwn(images, one)) return images[one]
  return undefined
}

/** What the container runs; undefined where neither it nor its image says. */
export function commandOf(
  spec: ContainerSpec,
  image: Image | undefined,
  env: Readonly<Record<string, string>>,
): string[] | undefined {
  const command = spec.command?.length ? spec.command : image?.command
  if (!command) return undefined
  // Whoever gives another command does not want the image's arguments.
  const args = spec.args?.length ? spec.args : spec.command?.length ? [] : (image?.args ?? [])
  return [...command, ...args].map(word => expand(word, env))
}
