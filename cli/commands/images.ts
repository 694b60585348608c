/**
 * `shipmate images`: what a cluster pulls, one a line, for who mirrors it.
 */
import type { Command } from 'commander'
import { defaultRegistry, type ImageName, imageOf, images } from '../../shared/images.ts'
import { manifest } from '../package.ts'

interface Options {
  readonly registry: string
  readonly tag: string
}

export function define(command: Command): void {
  command
    .option('--registry <HOST/PATH>', 'as they are called there', defaultRegistry)
    .option('--tag <VERSION>', 'of this version', manifest().version)
    .action(({ registry, tag }: Options) => {
      for (const name of Object.keys(images) as ImageName[])
        process.stdout.write(`${imageOf(name, { registry, tag })}\n`)
    })
}
