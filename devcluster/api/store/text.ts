/**
 * The JSON text of a stored object, made once: stored objects are never changed, so neither is their text.
 */
import type { Obj } from '../types.ts'

const texts = new WeakMap<Obj, string>()

/** `{"kind":…,"apiVersion":…,"metadata":…}`. */
export function textOf(object: Obj): string {
  let text = texts.get(object)
  if (text === undefined) {
    text = JSON.stringify(object)
    texts.set(object, text)
  }
  return text
}

/** As an item of a list of built-in objects: the list says the kind. */
export function itemText(object: Obj): string {
  const text = textOf(object)
  const head = `{"kind":${JSON.stringify(object.kind)},"apiVersion":${JSON.stringify(object.apiVersion)},`
  return text.startsWith(head) ? `{${text.slice(head.length)}` : text
}
