/**
 * A watch: what is there, if asked for, then each change as a line of JSON.
 *
 * Guarantees: a selection is watched as if nothing else existed: what leaves it is DELETED, what comes into it ADDED. An event's text is made once
 * for all who watch. A watcher that does not read holds up nobody, and is cut off when too much waits for it.
 */
import type { Timer } from '../../../shared/clock.ts'
import { ApiError, expired, type Status } from '../problems.ts'
import type { Change } from '../store/shelf.ts'
import { Compacted } from '../store/store.ts'
import { textOf } from '../store/text.ts'
import type { ApiResponse, Asked, Json, Obj } from '../types.ts'
import { apiVersion, type Form, formOf, partial, textIn } from './answer.ts'
import { type Context, shelfOf } from './context.ts'
import { isShownAsKept, shown } from './convert.ts'
import { type ListOptions, listOptions, revisionOf } from './list-options.ts'
import { type Matcher, matcherOf } from './selectors.ts'

type EventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'

/** Milliseconds between bookmarks, and until a watch that names no time ends: as long as a server's, or twice. */
const bookmarkEvery = 60_000
/** Milliseconds before its end that a watch gets its last one. */
const lastBookmark = 2000
const longest = 1800_000
/** Characters that may wait for a reader. */
const mostWaiting = 64 << 20

export async function watch(context: Context, asked: Asked): Promise<ApiResponse> {
  const { query, headers } = asked.request
  const form = formOf(headers.accept?.replaceAll(';stream=watch', ''), context.hooks.table !== undefined)
  const options = listOptions(query, true)
  const byName = asked.name === undefined ? undefined : (object: Obj) => object.metadata.name === asked.name
  const selected = matcherOf(query, asked.type)
  const matches = byName && selected ? (object: Obj) => byName(object) && selected(object) : (byName ?? selected)
  const from = revisionOf(options.resourceVersion, why => {
    const error = new ApiError(500, '', why)
    delete error.status.reason
    return error
  })
  return {
    status: 200,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-cache, private' },
    body: stream(context, asked, { form, options, matches, from }),
  }
}

interface Watching {
  readonly form: Form
  readonly options: ListOptions
  readonly matches: Matcher | undefined
  readonly from: number
}

async function* stream(context: Context, asked: Asked, watching: Watching): AsyncGenerator<string, void, undefined> {
  const { store, clock, hooks, closing } = context
  const { form, options, matches, from } = watching
  const { signal } = asked.request
  const shelf = shelfOf(asked.type)
  const isPlain = form.as === 'Object' && isShownAsKept(asked)
  let waiting: (string | Seen)[] = []
  let size = 0
  let over = false
  let wake: (() => void) | undefined
  let columnsSent = false
  const push = (event: string | Seen) => {
    waiting.push(event)
    size += typeof event === 'string' ? event.length : 1000
    if (size > mostWaiting) over = true
    wake?.()
  }
  const end = () => {
    over = true
    wake?.()
  }
  const encode = async ({ type, object }: Seen): Promise<string> => {
    const text = textIn(form, await shown(object, asked, hooks), asked, hooks, !columnsSent)
    columnsSent = true
    return line(type, text)
  }
  const add = (type: EventType, object: Obj, change?: Change) => {
    push(isPlain ? lineOf(type, object, change) : { type, object })
  }
  const hear = (change: Change) => {
    const seen = seenBy(change, matches)
    if (seen) add(seen.type, seen.object, change)
  }

  const timers = new Set<Timer>()
  let stop = () => {}
  let unlisted = () => {}
  try {
    // A server that ends before it waits for nobody; whoever wants the start has it from one moment.
    const wantsStart = options.sendInitialEvents ?? from === 0
    let start = from
    if (wantsStart) {
      const page = store.page(shelf, { namespace: asked.namespace, matches })
      for (const object of page.items) add('ADDED', object)
      start = page.revision
      if (options.sendInitialEvents && options.allowBookmarks) {
        push(bookmark(asked, form, start, { 'k8s.io/initial-events-end': 'true' }))
      }
    } else if (options.sendInitialEvents === false && from === 0) start = store.revision
    try {
      stop = store.watch(shelf, asked.namespace, start, change => {
        if (change.revision > start) hear(change)
      })
    } catch (error) {
      if (!(error instanceof Compacted)) throw error
      yield line('ERROR', JSON.stringify(tooOld(start, error.oldest)))
      return
    }
    signal.addEventListener('abort', end, { once: true })
    closing.addEventListener('abort', end, { once: true })
    if (signal.aborted || closing.aborted) return
    // A resource whose definition has gone is watched by nobody.
    unlisted = context.resources.onChange(() => {
      const { group, resource, custom } = asked.type
      if (context.resources.find(group, asked.version.version, resource)?.type.custom !== custom) end()
    })
    const seconds = options.timeoutSeconds
    const lasts = seconds ? seconds * 1000 : longest * (1 + Math.random())
    timers.add(clock.after(lasts, end))
    if (options.allowBookmarks) {
      let left = lasts - lastBookmark
      const again = () => {
        if (left <= 0) return
        const wait = Math.min(bookmarkEvery, left)
        left -= wait
        const timer = clock.after(wait, () => {
          timers.delete(timer)
          push(bookmark(asked, form, store.revision, undefined))
          again()
        })
        timers.add(timer)
      }
      again()
    }
    for (;;) {
      if (waiting.length > 0) {
        const batch = waiting
        waiting = []
        size = 0
        if (batch.every(event => typeof event === 'string')) yield batch.join('')
        else for (const event of batch) yield typeof event === 'string' ? event : await encode(event)
        continue
      }
      if (over) return
      await new Promise<void>(resolve => {
        wake = resolve
      })
      wake = undefined
    }
  } finally {
    stop()
    unlisted()
    for (const timer of timers) timer.cancel()
    signal.removeEventListener('abort', end)
    closing.removeEventListener('abort', end)
  }
}

interface Seen {
  readonly type: EventType
  readonly object: Obj
}

/** What a change is to somebody who sees only some objects. */
function seenBy({ object, previous, last, revision }: Change, matches: Matcher | undefined): Seen | undefined {
  const was = previous !== undefined && (!matches || matches(previous))
  const is = object !== undefined && (!matches || matches(object))
  if (is) return { type: was ? 'MODIFIED' : 'ADDED', object }
  if (!was) return undefined
  if (last) return { type: 'DELETED', object: last }
  // It left the selection: as it was, at the revision of the change.
  const { metadata, ...rest } = previous
  const { kind, apiVersion: version } = previous
  return {
    type: 'DELETED',
    object: { ...{ kind, apiVersion: version }, metadata: { ...metadata, resourceVersion: String(revision) }, ...rest },
  }
}

const line = (type: EventType, text: string) => `{"type":"${type}","object":${text}}\n`

const lines = new WeakMap<Change, { type: EventType; object: Obj; text: string }>()

/** One text for all watchers that see the same. */
function lineOf(type: EventType, object: Obj, change: Change | undefined): string {
  const known = change && lines.get(change)
  if (known && known.type === type && (known.object === object || type === 'DELETED')) return known.text
  const text = line(type, textOf(object))
  if (change) lines.set(change, { type, object, text })
  return text
}

function bookmark(asked: Asked, form: Form, revision: number, annotations: Record<string, string> | undefined): string {
  const metadata = {
    resourceVersion: String(revision),
    creationTimestamp: null,
    ...(annotations ? { annotations } : {}),
  }
  const object = { kind: asked.type.kind, apiVersion: apiVersion(asked), metadata } as unknown as Obj
  if (form.as === 'Table') {
    const row = { cells: null, object: { ...(partial(object, form.version, asked) as object) } }
    const table = {
      kind: 'Table',
      apiVersion: `meta.k8s.io/${form.version}`,
      metadata,
      columnDefinitions: null,
      rows: [row],
    }
    return line('BOOKMARK', JSON.stringify(table))
  }
  return line(
    'BOOKMARK',
    JSON.stringify(form.as === 'PartialObjectMetadata' ? (partial(object, form.version, asked) as Json) : object),
  )
}

function tooOld(asked: number, oldest: number): Status {
  return expired(`too old resource version: ${asked} (${oldest})`).status
}
