/**
 * `shipmate inject -f FILE`: prints the file with the sidecar added to the pod templates that ask for one. For GitOps, and wherever no webhook is.
 */
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import { lifecycleLabel } from '../../controller/app/workload/marks.ts'
import { messageOf } from '../../shared/errors.ts'
import { defaultRegistry, imageOf } from '../../shared/images.ts'
import { Failure, Misuse } from '../ending.ts'
import { type Input, injectTexts } from '../inject/text.ts'
import { manifest } from '../package.ts'

interface Options {
  readonly filename: readonly string[]
  readonly output: string
  readonly lifecycle?: string
  readonly app?: string
  readonly lifecycleFile?: readonly string[]
  readonly registry?: string
  readonly image?: string
  readonly pullSecret?: readonly string[]
  readonly nativeSidecars: boolean
}

export function define(command: Command): void {
  command
    .requiredOption('-f, --filename <FILE...>', 'manifests, as YAML or JSON; - is the standard input')
    .option('-o, --output <FORMAT>', 'yaml: as it was written, with what is added', 'yaml')
    .option('--lifecycle <NAME>', `for the template that has no label ${lifecycleLabel}`)
    .option('--app <NAME>', "the app's name, where no annotation says it (default: the workload's)")
    .option('--lifecycle-file <FILE...>', 'where else Lifecycles are, which say how long the end of a pod may take')
    .option('--registry <HOST/PATH>', `where images are pulled from (default: ${defaultRegistry})`)
    .option('--image <NAME>', "the sidecar's image (default: shipmate-sidecar of this version, in the registry)")
    .option('--pull-secret <NAME...>', "a Secret in the pods' namespace by which images are pulled")
    .option('--no-native-sidecars', 'add a plain container: for clusters whose init containers cannot go on')
    .action(async (options: Options) => {
      const { registry, image, lifecycle, app } = options
      if (options.output !== 'yaml') throw new Misuse(`--output ${options.output}: yaml is the only format`)
      if (app !== undefined && lifecycle === undefined)
        throw new Misuse('--app needs --lifecycle; a template with the label names its app by an annotation')
      if (image !== undefined && registry !== undefined)
        throw new Misuse('--image and --registry: one of them says where the image is')
      const inputs = await Promise.all(options.filename.map(read))
      const known = await Promise.all((options.lifecycleFile ?? []).map(read))
      const { version } = manifest()
      const settings = {
        ...{ version, lifecycle, app, pullSecrets: options.pullSecret, nativeSidecars: options.nativeSidecars },
        image: image ?? imageOf('sidecar', { registry, tag: version }),
      }
      const { texts, warnings, problems, injected } = injectTexts(inputs, known, settings)
      for (const warning of warnings) process.stderr.write(`${warning}\n`)
      if (problems.length > 0) {
        for (const problem of problems) process.stderr.write(`${problem}\n`)
        throw new Failure('refused: nothing was printed')
      }
      if (
        injected === 0 &&
        warnings.length === 0 &&
        lifecycle === undefined &&
        !texts.some(one => one.includes(lifecycleLabel))
      )
        process.stderr.write(`no pod template has the label ${lifecycleLabel}: nothing was added\n`)
      process.stdout.write(joined(texts))
    })
}

async function read(file: string): Promise<Input> {
  try {
    return { file, text: file === '-' ? await text(process.stdin) : readFileSync(file, 'utf8') }
  } catch (error) {
    throw new Failure(`${file} cannot be read: ${messageOf(error)}`)
  }
}

/** Several files as one stream of documents. */
function joined(texts: readonly string[]): string {
  return texts
    .map((one, at) => {
      const isLast = at === texts.length - 1
      const begins = at === 0 || /^(%|---(\s|$))/.test(one) ? '' : '---\n'
      return begins + (isLast || one.endsWith('\n') ? one : `${one}\n`)
    })
    .join('')
}
