// Flags that all CSI sidecars share, with the names of the upstream sidecars.
import { duration, number, rate, text, toggle } from './typed.ts'

/** Connections to the driver and the API server. */
export const CONNECTION_FLAGS = {
  csiAddress: text('--csi-address', '/run/csi/socket', 'socket of the CSI driver'),
  timeout: duration('--timeout', '10s', 'timeout of one call to the driver'),
  kubeconfig: text(
    '--kubeconfig',
    '',
    'kubeconfig of the API server (default: $KUBECONFIG, else the in-cluster config)',
  ),
  master: text('--master', '', 'address of the API server, in place of the one in the kubeconfig'),
  kubeApiQps: rate('--kube-api-qps', 5, 'requests to the API server per second; -1: no limit'),
  kubeApiBurst: number('--kube-api-burst', 10, 'burst of requests to the API server'),
}

export const ELECTION_FLAGS = {
  leaderElection: toggle('--leader-election', false, 'elect a leader among several processes; only the leader works'),
  leaderElectionNamespace: text(
    '--leader-election-namespace',
    '',
    'namespace of the Lease (default: the namespace of this pod)',
  ),
  leaderElectionLeaseDuration: duration(
    '--leader-election-lease-duration',
    '15s',
    'how long other processes wait for a leader that does not renew',
  ),
  leaderElectionRenewDeadline: duration(
    '--leader-election-renew-deadline',
    '10s',
    'how long the leader retries to renew before it stops leading',
  ),
  leaderElectionRetryPeriod: duration(
    '--leader-election-retry-period',
    '5s',
    'time between attempts to take or renew the Lease',
  ),
}

export const MONITORING_FLAGS = {
  httpEndpoint: text(
    '--http-endpoint',
    '',
    'HOST:PORT to serve metrics, /healthz, /healthz/leader-election and /readyz',
  ),
  metricsAddress: text('--metrics-address', '', 'deprecated name of --http-endpoint'),
  metricsPath: text('--metrics-path', '/metrics', 'path of the metrics'),
}
