// Names the leases of the sidecars and the scheduler. A command that replaces one upstream program uses that program's lease, so
// that only one of them leads during a rolling update from one to the other.

/** The lease of external-provisioner. */
export const provisionerLease = (driver: string): string => sanitize(driver)

/** The lease of external-resizer. With --node-deployment, which upstream does not have, every node has a separate lease. */
export const resizerLease = (driver: string, node?: string): string =>
  `external-resizer-${sanitize(driver)}${node === undefined ? '' : `-${node}`}`

/** The lease of external-attacher. */
export const attacherLease = (driver: string): string => `external-attacher-leader-${sanitize(driver)}`

/** The lease of external-health-monitor-controller. */
export const healthMonitorLease = (driver: string): string => `external-health-monitor-leader-${sanitize(driver)}`

/** The lease of `stowage sidecar`, which replaces all four. */
export const sidecarLease = (driver: string): string => `stowage-sidecar-${sanitize(driver)}`

/** The lease in which the provisioner of `stowage provisioner` and `stowage sidecar` records its intents. */
export const intentLease = (driver: string): string => `stowage-intents-${sanitize(driver)}`

/**
 * Returns one lease for each scheduler name, so that two processes exclude each other only if they schedule the same pods.
 * `default-scheduler` uses the lease of kube-scheduler; other names use a lease of the same name. Sorted, because every process
 * must acquire the leases in the same order.
 */
export function schedulerLeases(names: readonly string[]): [string, ...string[]] {
  const leases = names.map((name) => (name === 'default-scheduler' ? 'kube-scheduler' : sanitize(name).toLowerCase()))
  const [firstLease = 'kube-scheduler', ...otherLeases] = [...new Set(leases)].sort()
  return [firstLease, ...otherLeases]
}

/** Replaces characters like csi-lib-utils: `hostpath.csi.k8s.io` becomes `hostpath-csi-k8s-io`. */
function sanitize(name: string): string {
  const text = name.replace(/[^a-zA-Z0-9-]/g, '-')
  return text.endsWith('-') ? `${text}X` : text
}
