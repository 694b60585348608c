// Puts Widgets on the server before a trial and takes everything away after it. The namespace itself stays: without
// controllers nothing finishes the deletion of one.

import { type Api, configMapOf, configMapsPath, eachOf, type Widget, widgetsPath } from './api.ts'

export const widgetName = (i: number) => `widget-${String(i).padStart(5, '0')}`

export async function createWidgets(api: Api, namespace: string, n: number): Promise<void> {
  await api.request('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
  await eachOf(Array(n).keys(), 16, async i => {
    const name = widgetName(i)
    const spec = { value: `${name} at first` }
    await api.request('POST', widgetsPath(namespace), {
      apiVersion: 'bench.example.com/v1',
      kind: 'Widget',
      metadata: { name },
      spec,
    })
  })
}

export async function deleteAll(api: Api, namespace: string): Promise<void> {
  await Promise.all([configMapsPath, widgetsPath].map(path => api.request('DELETE', path(namespace))))
}

/** Does the Widget work once, unmeasured: a server that has just started answers more slowly than it will later. */
export async function warmUp(api: Api): Promise<void> {
  const namespace = 'warm-up'
  await createWidgets(api, namespace, 1_000)
  const { items } = await api.request<{ items: Widget[] }>('GET', widgetsPath(namespace))
  await eachOf(items, 10, async widget => {
    await api.request('POST', configMapsPath(namespace), configMapOf(widget))
    await api.request('PATCH', `${widgetsPath(namespace)}/${widget.metadata.name}/status`, {
      status: { observedValue: widget.spec.value },
    })
  })
  await deleteAll(api, namespace)
}
