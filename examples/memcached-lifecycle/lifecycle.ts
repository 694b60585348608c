/**
 * The life of memcached servers: what a sidecar observes of each, and what can be asked of it. Its commands need nothing but bash, which the sidecar's image has.
 */
import type { LifecycleSpec } from 'shipmate'

/** Says one line to the server beside it, and takes OK alone for a yes. What is said comes as arguments: no shell reads it. */
const tell = `exec 3<>/dev/tcp/127.0.0.1/11211 && printf '%s\\r\\n' "$*" >&3 && read -r -t 5 answer <&3 && echo "$answer" && [ "\${answer%$'\\r'}" = OK ]`

/** Waits until no client is connected to port 11211 (2BCB), for 20 seconds at most: who stays longer is cut off. */
const drain = `for _ in {1..40}; do grep -qs ':2BCB [0-9A-F]*:[0-9A-F]* 01 ' /proc/net/tcp /proc/net/tcp6 || exit 0; sleep 0.5; done`

export const memcached: LifecycleSpec = {
  states: [
    { name: 'Start', verb: 'Create', next: ['Running', 'Stopping'] },
    { name: 'Running', when: 'probes.accepting.ok', next: ['Servicing', 'Stopping'] },
    { name: 'Servicing', actions: ['flush', 'resize'], next: ['Running'] },
    { name: 'Stopping', actions: ['drain'], next: ['End'] },
    { name: 'End', verb: 'Delete', next: ['Start'] },
  ],
  preStop: 'drain',
  probes: [{ name: 'accepting', tcp: { port: 11211 }, every: '2s' }],
  actions: [
    {
      name: 'flush',
      description: 'Forgets everything.',
      exec: { command: ['bash', '-c', tell, 'tell', 'flush_all'] },
      order: 'parallel',
      timeout: '10s',
    },
    {
      name: 'resize',
      description: 'Caches more, or less, from now on; until the server is started again.',
      exec: { command: ['bash', '-c', tell, 'tell', 'cache_memlimit', '$(params.megabytes)'] },
      params: { megabytes: { type: 'integer', minimum: 16, maximum: 1024 } },
      idempotent: true,
      timeout: '10s',
    },
    {
      name: 'drain',
      description: 'Waits until the clients have gone.',
      exec: { command: ['bash', '-c', drain] },
      order: 'parallel',
      idempotent: true,
      timeout: '25s',
    },
  ],
}
