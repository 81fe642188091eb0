// Flags that all CSI sidecars share. They have the same names as in the upstream sidecars.
import { type ListenAddress, parseListen } from '../../base/listen-address.ts'
import { UsageError } from '../../base/usage-error.ts'
import type { SidecarSettings } from '../../processes/run-sidecar.ts'
import { checkLeaseTimes } from '../../runtime/lease-times.ts'
import { booleanFlag, durationFlag, invalidFlag, labelsFlag, numberFlag, rateFlag, textFlag } from './flag-types.ts'

/** Flags for the connections to the driver and the API server. */
export const CONNECTION_FLAGS = {
  csiAddress: textFlag('--csi-address', '/run/csi/socket', 'socket of the CSI driver'),
  timeout: durationFlag('--timeout', '10s', 'timeout of one call to the driver'),
  kubeconfig: textFlag(
    '--kubeconfig',
    '',
    'kubeconfig for the API server (default: $KUBECONFIG, or the in-cluster configuration)',
  ),
  master: textFlag('--master', '', 'address of the API server; overrides the kubeconfig'),
  kubeApiQps: rateFlag('--kube-api-qps', 5, 'maximum number of requests to the API server per second; -1 for no limit'),
  kubeApiBurst: numberFlag('--kube-api-burst', 10, 'maximum burst of requests to the API server'),
}

export const ELECTION_FLAGS = {
  leaderElection: booleanFlag(
    '--leader-election',
    false,
    'enable leader election; only the leader runs the controllers',
  ),
  leaderElectionNamespace: textFlag(
    '--leader-election-namespace',
    '',
    'namespace of the lease (default: the namespace of this pod, from $POD_NAMESPACE or its service account; otherwise "default")',
  ),
  leaderElectionLeaseDuration: durationFlag(
    '--leader-election-lease-duration',
    '15s',
    'how long candidates wait before they replace a leader that does not renew its lease',
  ),
  leaderElectionRenewDeadline: durationFlag(
    '--leader-election-renew-deadline',
    '10s',
    'how long the leader tries to renew its lease before it gives up leadership',
  ),
  leaderElectionRetryPeriod: durationFlag(
    '--leader-election-retry-period',
    '5s',
    'time between two attempts to acquire or renew the lease',
  ),
  leaderElectionLabels: labelsFlag(
    '--leader-election-labels',
    'labels that the leader puts on the lease, such as a:b,c:d',
  ),
}

/** Throws before the election if the times of the lease would allow two leaders or leave no time for a renewal. */
export function checkElectionFlags(settings: SidecarSettings): void {
  if (!settings.leaderElection) return
  const problem = checkLeaseTimes({
    leaseMs: settings.leaderElectionLeaseDuration,
    renewDeadlineMs: settings.leaderElectionRenewDeadline,
    retryMs: settings.leaderElectionRetryPeriod,
  })
  if (problem) throw new UsageError(`--leader-election: ${problem}`)
}

export const MONITORING_FLAGS = {
  httpEndpoint: textFlag(
    '--http-endpoint',
    '',
    'address (HOST:PORT) on which to serve metrics, /healthz, /healthz/leader-election, /readyz and /operations',
  ),
  metricsAddress: textFlag('--metrics-address', '', 'deprecated alias of --http-endpoint'),
  metricsPath: textFlag('--metrics-path', '/metrics', 'HTTP path of the metrics'),
}

export interface MonitoringFlags {
  readonly httpEndpoint: string
  readonly metricsAddress: string
  readonly metricsPath: string
}

/** Returns the address of the monitoring endpoint, if one is configured. */
export function readMonitoring({
  httpEndpoint,
  metricsAddress,
  metricsPath,
}: MonitoringFlags): ListenAddress | undefined {
  if (httpEndpoint && metricsAddress) throw new UsageError('Set --http-endpoint or --metrics-address, not both.')
  if (!metricsPath.startsWith('/')) throw invalidFlag('--metrics-path', metricsPath, 'a path such as /metrics')
  if (httpEndpoint) return parseListen(httpEndpoint, '--http-endpoint')
  return metricsAddress ? parseListen(metricsAddress, '--metrics-address') : undefined
}
