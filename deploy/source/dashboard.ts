/**
 * A dashboard for Grafana over metrics of the controller and of sidecars. A test holds the names against what is exported.
 */
interface Panel {
  readonly title: string
  readonly kind?: 'timeseries' | 'stat' | 'table'
  readonly unit?: string
  /** Expressions, by how each is called in the legend. */
  readonly of: Readonly<Record<string, string>>
}

interface Row {
  readonly title: string
  readonly panels: readonly Panel[]
}

const rows: readonly Row[] = [
  {
    title: 'Apps',
    panels: [
      { title: 'Apps by state', of: { '{{state}}': 'sum by (state) (shipmate_app_state)' } },
      {
        title: 'For how long in its state',
        kind: 'table',
        unit: 's',
        of: { '{{namespace}}/{{app}}': 'time() - shipmate_app_state_since_seconds' },
      },
      {
        title: 'Operations that ended',
        of: {
          '{{action}} {{outcome}}':
            'sum by (action, outcome) (increase(shipmate_app_operations_total[$__rate_interval]))',
        },
      },
      {
        title: 'How long operations took (95 %)',
        unit: 's',
        of: {
          '{{action}}':
            'histogram_quantile(0.95, sum by (action, le) (rate(shipmate_app_operation_seconds_bucket[$__rate_interval])))',
        },
      },
    ],
  },
  {
    title: 'Sidecars',
    panels: [
      {
        title: 'Connected',
        of: { connected: 'sum(shipmate_agents_connected)', 'should be': 'sum(shipmate_agents_followed)' },
      },
      {
        title: 'Reconnections',
        unit: 'ops',
        of: { reconnections: 'sum(rate(shipmate_agent_reconnects_total[$__rate_interval]))' },
      },
      {
        title: 'Round trips of calls (99 %)',
        unit: 's',
        of: {
          '{{call}}':
            'histogram_quantile(0.99, sum by (call, le) (rate(shipmate_agent_call_seconds_bucket[$__rate_interval])))',
        },
      },
      { title: 'Runs in progress', of: { '{{namespace}}': 'sum by (namespace) (shipmate_sidecar_runs_in_progress)' } },
      {
        title: 'Probes that fail',
        of: { '{{namespace}}': 'sum by (namespace) (rate(shipmate_sidecar_probe_failures_total[$__rate_interval]))' },
      },
      { title: 'Journals', unit: 'bytes', of: { largest: 'max(shipmate_sidecar_journal_bytes)' } },
    ],
  },
  {
    title: 'Controller',
    panels: [
      { title: 'Leads', kind: 'stat', of: { '{{name}} {{pod}}': 'leader_election_master_status' } },
      {
        title: 'Reconciliations',
        unit: 'ops',
        of: {
          '{{controller}} {{result}}':
            'sum by (controller, result) (rate(controller_runtime_reconcile_total[$__rate_interval]))',
        },
      },
      {
        title: 'Time of a reconciliation (99 %)',
        unit: 's',
        of: {
          '{{controller}}':
            'histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket[$__rate_interval])))',
        },
      },
      { title: 'Keys that wait', of: { '{{name}}': 'sum by (name) (workqueue_depth)' } },
      {
        title: 'Requests to the API server',
        unit: 'reqps',
        of: { '{{method}} {{code}}': 'sum by (method, code) (rate(rest_client_requests_total[$__rate_interval]))' },
      },
      { title: 'Watches that are down', kind: 'stat', of: { down: 'count(shipmate_watch_up == 0) or vector(0)' } },
      { title: 'Memory', unit: 'bytes', of: { '{{pod}}': 'process_resident_memory_bytes{job="shipmate-metrics"}' } },
      {
        title: 'CPU',
        unit: 'percentunit',
        of: { '{{pod}}': 'rate(process_cpu_seconds_total{job="shipmate-metrics"}[$__rate_interval])' },
      },
      {
        title: 'Event loop behind (99 %)',
        unit: 's',
        of: { '{{pod}}': 'nodejs_eventloop_lag_p99_seconds{job="shipmate-metrics"}' },
      },
    ],
  },
]

const datasource = { type: 'prometheus', uid: '$datasource' }
const columns = 3
const [width, height] = [24 / columns, 7]

function panelOf({ title, kind = 'timeseries', unit = 'short', of }: Panel, id: number, x: number, y: number): object {
  return {
    id,
    title,
    type: kind,
    datasource,
    gridPos: { x, y, w: width, h: height },
    fieldConfig: { defaults: { unit }, overrides: [] },
    targets: Object.entries(of).map(([legendFormat, expr], index) => ({
      refId: String.fromCharCode(65 + index),
      datasource,
      expr,
      legendFormat,
      ...(kind === 'table' && { format: 'table', instant: true }),
    })),
  }
}

function panels(): object[] {
  let [id, y] = [0, 0]
  return rows.flatMap(({ title, panels }) => {
    const head = { id: ++id, title, type: 'row', collapsed: false, gridPos: { x: 0, y: y++, w: 24, h: 1 }, panels: [] }
    const body = panels.map((panel, index) =>
      panelOf(panel, ++id, (index % columns) * width, y + Math.floor(index / columns) * height),
    )
    y += Math.ceil(panels.length / columns) * height
    return [head, ...body]
  })
}

export const dashboard: object = {
  uid: 'shipmate',
  title: 'Shipmate',
  tags: ['shipmate'],
  schemaVersion: 39,
  editable: true,
  time: { from: 'now-6h', to: 'now' },
  refresh: '30s',
  templating: {
    list: [{ name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', current: {}, hide: 0 }],
  },
  panels: panels(),
}
