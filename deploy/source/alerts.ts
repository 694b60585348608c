/**
 * What a person should be told of: rules for Prometheus over metrics of the controller and of sidecars. A test holds the names against what is exported.
 */
interface Alert {
  readonly alert: string
  readonly expr: string
  /** For how long it must hold. */
  readonly for: string
  readonly severity: 'critical' | 'warning' | 'info'
  readonly summary: string
  readonly description: string
}

const alerts: readonly Alert[] = [
  {
    alert: 'ShipmateNobodyLeads',
    expr: 'absent(leader_election_master_status{name=~"shipmate-controller.*"} == 1)',
    for: '5m',
    severity: 'critical',
    summary: 'No controller looks after apps',
    description:
      'No replica of the controller leads. Applications and runs go on; wishes, schedules and healing wait. Look at the pods in the namespace of the controller, and at its Lease.',
  },
  {
    alert: 'ShipmateWatchDown',
    expr: 'min by (resource, namespace) (shipmate_watch_up) == 0',
    for: '10m',
    severity: 'critical',
    summary: 'The controller cannot watch {{ $labels.resource }}',
    description:
      'What changes there is not seen. The log of the controller says why: a missing right or CRD, or a network.',
  },
  {
    alert: 'ShipmateReconcileErrors',
    expr: 'sum by (controller) (rate(controller_runtime_reconcile_errors_total[10m])) > 0.1',
    for: '15m',
    severity: 'warning',
    summary: 'The controller {{ $labels.controller }} keeps failing',
    description:
      'More than one reconciliation in ten seconds fails. The conditions of the objects, and the log, say why.',
  },
  {
    alert: 'ShipmateReconcilePanics',
    expr: 'sum by (controller) (increase(controller_runtime_reconcile_panics_total[1h])) > 0',
    for: '0m',
    severity: 'warning',
    summary: 'A defect in the controller {{ $labels.controller }}',
    description: 'A reconciliation threw what a program error throws. The log has its stack: please report it.',
  },
  {
    alert: 'ShipmateHotLoop',
    expr: 'sum by (controller) (increase(shipmate_hot_loops_total[15m])) > 0',
    for: '0m',
    severity: 'warning',
    summary: 'The controller {{ $labels.controller }} and somebody else fight for an object',
    description:
      'An object was written again and again without getting further. An event with the reason HotLoop names it.',
  },
  {
    alert: 'ShipmateQueueStuck',
    expr: 'max by (name) (workqueue_longest_running_processor_seconds) > 600',
    for: '5m',
    severity: 'warning',
    summary: 'The controller {{ $labels.name }} is stuck on one object',
    description: 'One reconciliation goes on for more than ten minutes.',
  },
  {
    alert: 'ShipmateSidecarsUnreachable',
    expr: 'sum(shipmate_agents_followed) - sum(shipmate_agents_connected) > 0',
    for: '10m',
    severity: 'warning',
    summary: '{{ $value }} sidecars cannot be reached',
    description:
      'Their pods are Unknown, and nothing is asked of them. The condition SidecarsReachable of an app names the pod and the reason.',
  },
  {
    alert: 'ShipmateAppUnknown',
    expr: 'shipmate_app_state{state="Unknown"} == 1',
    for: '10m',
    severity: 'warning',
    summary: 'The state of {{ $labels.namespace }}/{{ $labels.app }} is not known',
    description: 'kubectl get statefulapp says what it waits for.',
  },
  {
    alert: 'ShipmateOperationFailed',
    expr: 'sum by (action, outcome) (increase(shipmate_app_operations_total{outcome!="Succeeded"}[1h])) > 0',
    for: '0m',
    severity: 'warning',
    summary: 'An operation {{ $labels.action }} ended {{ $labels.outcome }}',
    description: 'kubectl get operations -A shows it, with the end of its log in the status.',
  },
  {
    alert: 'ShipmateSidecarJournalFailed',
    expr: 'max by (namespace, pod) (shipmate_sidecar_journal_failed) == 1',
    for: '5m',
    severity: 'critical',
    summary: 'The sidecar of {{ $labels.namespace }}/{{ $labels.pod }} cannot write its journal',
    description: 'No action runs there until the volume of its state can be written again.',
  },
  {
    alert: 'ShipmateSidecarConfigRefused',
    expr: 'max by (namespace, pod) (shipmate_sidecar_config_refused) == 1',
    for: '10m',
    severity: 'warning',
    summary: 'The sidecar of {{ $labels.namespace }}/{{ $labels.pod }} refuses its lifecycle',
    description:
      'It goes on with the last good one. Its log says what is wrong with the new one, or with its signature.',
  },
]

export const alertGroups: readonly object[] = [
  {
    name: 'shipmate',
    rules: alerts.map(({ alert, expr, for: time, severity, summary, description }) => ({
      alert,
      expr,
      for: time,
      labels: { severity },
      annotations: { summary, description },
    })),
  },
]
