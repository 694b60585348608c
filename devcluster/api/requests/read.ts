/**
 * Get and list: of now, or of a revision that is still remembered.
 */
import { type ApiError, badRequest, expired, notFound } from '../problems.ts'
import { decodeContinue, encodeContinue } from '../store/continue.ts'
import { Compacted, type Page } from '../store/store.ts'
import { itemText, textOf } from '../store/text.ts'
import type { ApiResponse, Asked, Obj } from '../types.ts'
import { formOf, listText, respond, textIn } from './answer.ts'
import { type Context, type ListMeta, shelfOf } from './context.ts'
import { shown, shownAll } from './convert.ts'
import { badRevision, type ListOptions, listOptions, revisionOf, tooLargeRevision } from './list-options.ts'
import { type Matcher, matcherOf } from './selectors.ts'

/** What is stored. Throws 404. */
export function stored({ store }: Context, { type, namespace, name = '' }: Asked): Obj {
  const object = store.get(shelfOf(type), namespace, name)
  if (!object) throw notFound(type, name)
  return object
}

export async function get(context: Context, asked: Asked): Promise<ApiResponse> {
  const form = formOf(asked.request.headers.accept, context.hooks.table !== undefined)
  const wanted = revisionOf(asked.request.query.get('resourceVersion') ?? '', badRevision)
  if (wanted > context.store.revision) throw tooLargeRevision(wanted, context.store.revision)
  const object = await shown(stored(context, asked), asked, context.hooks)
  return respond(200, textIn(form, object, asked, context.hooks), form, deprecation(asked))
}

export const deprecation = ({ version }: Asked) => (version.deprecated ? [version.deprecated] : [])

export async function list(context: Context, asked: Asked): Promise<ApiResponse> {
  const { query, headers } = asked.request
  const form = formOf(headers.accept, context.hooks.table !== undefined)
  const options = listOptions(query, false)
  const matches = matcherOf(query, asked.type)
  const page = await pageOf(context, asked, options, matches)
  const isBuiltIn = asked.type.custom === undefined
  const texts = () => page.items.map(isBuiltIn ? itemText : textOf)
  return respond(200, listText(form, page.items, texts, page.metadata, asked, context.hooks), form, deprecation(asked))
}

interface ShownPage {
  readonly items: readonly Obj[]
  readonly metadata: ListMeta
}

async function pageOf(
  context: Context,
  asked: Asked,
  options: ListOptions,
  matches: Matcher | undefined,
): Promise<ShownPage> {
  const { at, after } = startOf(context, asked, options)
  const { namespace, type } = asked
  let page: Page
  try {
    page = context.store.page(shelfOf(type), { namespace, at, after, limit: options.limit, matches })
  } catch (error) {
    if (!(error instanceof Compacted)) throw error
    throw after === undefined
      ? expired('The resourceVersion for the provided list is too old.')
      : expiredToken(after, namespace)
  }
  const items = await shownAll(page.items, asked, context.hooks)
  return { items, metadata: metadataOf(page, namespace) }
}

function startOf(
  { store }: Context,
  { namespace }: Asked,
  options: ListOptions,
): { at: number | undefined; after: string | undefined } {
  const { resourceVersion, match, limit, continue: token } = options
  if (token !== '') {
    const { revision, after } = decodeContinue(token)
    if (resourceVersion !== '' && resourceVersion !== '0') {
      throw badRequest('specifying resource version is not allowed when using continue')
    }
    const at = revision < 0 ? undefined : revision
    if (at !== undefined && at > store.revision) throw tooLargeRevision(at, store.revision)
    return { at, after: namespace === undefined ? after : `${namespace}/${after}` }
  }
  const wanted = revisionOf(resourceVersion, badRevision)
  if (wanted > store.revision) throw tooLargeRevision(wanted, store.revision)
  const isExact = match === 'Exact' || (match === '' && limit !== undefined && wanted > 0)
  return { at: isExact ? wanted : undefined, after: undefined }
}

function metadataOf({ revision, next, remaining }: Page, namespace: string | undefined): ListMeta {
  if (next === undefined) return { resourceVersion: String(revision) }
  const token = encodeContinue({ revision, after: relative(next, namespace) }, namespace !== undefined)
  return {
    resourceVersion: String(revision),
    continue: token,
    ...(remaining === undefined ? {} : { remainingItemCount: remaining }),
  }
}

const relative = (key: string, namespace: string | undefined) =>
  namespace === undefined ? key : key.slice(namespace.length + 1)

/** The rest can be had all the same, as of now. */
function expiredToken(after: string, namespace: string | undefined): ApiError {
  const error = expired(
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
  )
  error.status.metadata.continue = encodeContinue(
    { revision: -1, after: relative(after, namespace) },
    namespace !== undefined,
  )
  return error
}
