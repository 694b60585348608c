// Sees what a user would see: two watches of the bench's own, on the Widgets and the ConfigMaps of a namespace, the
// same for every program. Times are those at which an event arrived here.

import { type Api, type ConfigMap, configMapsPath, type WatchEvent, type Widget, widgetsPath } from './api.ts'

export interface Observer extends AsyncDisposable {
  /** How many Widgets have their ConfigMap and their status right. */
  readonly right: number
  widget(name: string): Widget | undefined
  configMap(name: string): ConfigMap | undefined
  /** Resolves with the time (performance.now) of the event that made it true; rejects after the timeout, in ms. */
  until(isTrue: () => boolean, timeout: number, what: string): Promise<number>
}

export async function observe(api: Api, namespace: string): Promise<Observer> {
  const stopped = new AbortController()
  const widgets = new Map<string, Widget>()
  const configMaps = new Map<string, ConfigMap>()
  const rightOnes = new Set<string>()
  const waiters = new Set<(at: number) => void>()
  let failure: Error | undefined

  async function follow<T extends Widget | ConfigMap>(path: string, objects: Map<string, T>): Promise<void> {
    const list = await api.request<{ metadata: { resourceVersion: string }; items: T[] }>('GET', path)
    for (const item of list.items) objects.set(item.metadata.name, item)
    const onEvent = ({ type, object }: WatchEvent<T>) => {
      const { name } = object.metadata
      if (type === 'DELETED') objects.delete(name)
      else objects.set(name, object)
      if (isRight(widgets.get(name), configMaps.get(name))) rightOnes.add(name)
      else rightOnes.delete(name)
      const at = performance.now()
      for (const check of waiters) check(at)
    }
    // An hour: no trial takes as long, and the server would end the watch sooner by itself.
    const query = `watch=1&timeoutSeconds=3600&resourceVersion=${list.metadata.resourceVersion}`
    api.watch<T>(`${path}?${query}`, onEvent, stopped.signal).catch((error: Error) => {
      failure = error
      for (const check of waiters) check(performance.now())
    })
  }
  await follow(widgetsPath(namespace), widgets)
  await follow(configMapsPath(namespace), configMaps)

  return {
    get right() {
      return rightOnes.size
    },
    widget: name => widgets.get(name),
    configMap: name => configMaps.get(name),
    until: (isTrue, timeout, what) =>
      new Promise((resolve, reject) => {
        const settle = (error: Error | undefined, at: number) => {
          waiters.delete(check)
          clearTimeout(timer)
          if (error === undefined) resolve(at)
          else reject(error)
        }
        const check = (at: number) => {
          if (failure !== undefined || isTrue()) settle(failure, at)
        }
        const timer = setTimeout(() => settle(new Error(`not within ${timeout} ms: ${what}`), 0), timeout)
        waiters.add(check)
        check(performance.now())
      }),
    [Symbol.asyncDispose]: async () => stopped.abort(),
  }
}

function isRight(widget: Widget | undefined, child: ConfigMap | undefined): boolean {
  if (widget === undefined || child === undefined) return false
  const { value } = widget.spec
  return (
    widget.status?.observedValue === value &&
    child.data?.value === value &&
    child.metadata.ownerReferences?.some(({ uid, controller }) => controller && uid === widget.metadata.uid) === true
  )
}
