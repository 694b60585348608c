/**
 * The images there are, and where they are pulled from: one registry for all of them, which may be a mirror. Pure.
 */

/** What is pulled, and nothing else is: by the controller's Deployment, and by pods that get a sidecar. */
export const images = { controller: 'shipmate-controller', sidecar: 'shipmate-sidecar' } as const

export type ImageName = keyof typeof images

/** Where they are unless somebody says otherwise. */
export const defaultRegistry = 'registry.shipmate.dev'

export interface ImageSource {
  /** Host, port and path, as `registry.example.com/mirror`. Default `registry.shipmate.dev`; empty: the name alone, for an image that is on the node. */
  readonly registry?: string | undefined
  /** The version. */
  readonly tag: string
}

export function imageOf(name: ImageName, { registry = defaultRegistry, tag }: ImageSource): string {
  return `${registry === '' ? '' : `${registry.replace(/\/+$/, '')}/`}${images[name]}:${tag}`
}
