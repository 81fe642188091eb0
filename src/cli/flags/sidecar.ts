// Flags that all components beside a CSI driver have, named as such components have them everywhere.
import { duration, number, rate, text, toggle } from './typed.ts'

/** To the driver, and to the server. */
export const CONNECTION_FLAGS = {
  csiAddress: text('--csi-address', '/run/csi/socket', 'socket of the CSI driver'),
  timeout: duration('--timeout', '10s', 'for one call of the driver'),
  kubeconfig: text(
    '--kubeconfig',
    '',
    'kubeconfig of the server (default: $KUBECONFIG, else the cluster this runs in)',
  ),
  master: text('--master', '', 'address of the server, in place of the one in the kubeconfig'),
  kubeApiQps: rate('--kube-api-qps', 5, 'requests to the server per second; -1 for no limit'),
  kubeApiBurst: number('--kube-api-burst', 10, 'how many of them may go at once after a quiet time'),
}

export const ELECTION_FLAGS = {
  leaderElection: toggle('--leader-election', false, 'of several processes only one works'),
  leaderElectionNamespace: text(
    '--leader-election-namespace',
    '',
    "where its lease is (default: this pod's namespace)",
  ),
  leaderElectionLeaseDuration: duration(
    '--leader-election-lease-duration',
    '15s',
    'how long others wait for the leader',
  ),
  leaderElectionRenewDeadline: duration(
    '--leader-election-renew-deadline',
    '10s',
    'how long a leader believes it is one',
  ),
  leaderElectionRetryPeriod: duration(
    '--leader-election-retry-period',
    '5s',
    'between two tries to get or keep the lease',
  ),
}

export const MONITORING_FLAGS = {
  httpEndpoint: text('--http-endpoint', '', 'HOST:PORT for metrics, /healthz and /healthz/leader-election'),
  metricsAddress: text('--metrics-address', '', 'the same, as it was called before'),
  metricsPath: text('--metrics-path', '/metrics', 'where the metrics are'),
}
