// Checks the leases of the programs that manage a CSI driver's volumes: an upstream sidecar that does the work of
// `stowage sidecar`, two leaders of one program, a leader that has stopped without releasing its lease, and a
// kube-controller-manager that leads at the same time as `stowage controllers`.
import type { Stored } from '../../../../api/kind.ts'
import { csiDriverKind } from '../../../../api/kinds/csi-driver/csi-driver.ts'
import { leaseKind } from '../../../../api/kinds/lease/lease.ts'
import type { Lease } from '../../../../api/kinds/lease/lease-schema.ts'
import { CONTROLLERS_LEASE } from '../../../../processes/controllers.ts'
import {
  attacherLease,
  healthMonitorLease,
  provisionerLease,
  resizerLease,
  sidecarLease,
} from '../../../../processes/lease-names.ts'
import { formatShortAge } from '../../status/format-status.ts'
import type { Check, Finding } from '../check.ts'
import { serverTimeMs } from '../probe-server.ts'

/** The upstream sidecars whose work `stowage sidecar` does, with their leases. */
const UPSTREAM_SIDECARS = [
  { program: 'external-provisioner', leaseOf: provisionerLease },
  { program: 'external-resizer', leaseOf: (driver: string) => resizerLease(driver) },
  { program: 'external-attacher', leaseOf: attacherLease },
  { program: 'external-health-monitor-controller', leaseOf: healthMonitorLease },
]
const UPSTREAM_CONTROLLERS_LEASE = 'kube-controller-manager'

interface HeldLease {
  readonly id: string
  readonly name: string
  readonly holder: string
  /** The time since the lease expired, or undefined if it is renewed. */
  readonly expiredMs?: number
}

export const leases: Check = {
  id: 'leases',
  title: 'Leases',
  async run({ cluster, clock, server, driver: selectedDriver }) {
    const nowMs = serverTimeMs(server, clock)
    const heldLeases = (await cluster.list(leaseKind)).flatMap((lease) => toHeldLease(lease, nowMs))
    const drivers = selectedDriver
      ? [selectedDriver]
      : (await cluster.list(csiDriverKind)).map(({ metadata }) => metadata.name)
    const findings = [
      ...drivers.flatMap((driver) => describeDriver(driver, heldLeases)),
      ...describeControllers(heldLeases),
    ]
    return findings.length > 0 ? findings : [{ status: 'ok', message: describeHolders(heldLeases, drivers) }]
  },
}

function toHeldLease({ metadata, spec }: Readonly<Stored<Lease>>, nowMs: number): HeldLease[] {
  const { holderIdentity: holder, renewTime = '', leaseDurationSeconds = 0 } = spec ?? {}
  if (!holder) return []
  const { namespace = '', name } = metadata
  const expiredMs = nowMs - (Date.parse(renewTime) + leaseDurationSeconds * 1_000)
  return [{ id: `${namespace}/${name}`, name, holder, ...(expiredMs > 0 ? { expiredMs } : {}) }]
}

function describeDriver(driver: string, heldLeases: readonly HeldLease[]): Finding[] {
  const sidecars = heldLeases.filter(({ name }) => name === sidecarLease(driver))
  const sidecar = sidecars.find(isRenewed)
  const upstreamFindings = UPSTREAM_SIDECARS.flatMap(({ program, leaseOf }): Finding[] => {
    const upstreamLeases = heldLeases.filter((lease) => lease.name === leaseOf(driver) && isRenewed(lease))
    return [
      ...describeLeaders(upstreamLeases, program),
      ...upstreamLeases
        .filter(({ holder }) => holder !== sidecar?.holder)
        .map((lease) => describeForeignLease(lease, program, sidecar)),
    ]
  })
  return [
    ...describeLeaders(sidecars.filter(isRenewed), 'stowage sidecar'),
    ...upstreamFindings,
    ...(sidecar ? [] : sidecars.slice(0, 1).map(describeExpiredLease)),
  ]
}

const isRenewed = ({ expiredMs }: HeldLease): boolean => expiredMs === undefined

/** Leases of one name in several namespaces do not exclude each other. */
function describeLeaders(renewedLeases: readonly HeldLease[], program: string): Finding[] {
  if (renewedLeases.length < 2) return []
  const holders = renewedLeases.map(({ id, holder }) => `${holder} with the lease ${id}`).join(' and ')
  return [
    {
      status: 'error',
      message: `Several processes lead as ${program} for one driver: ${holders}.`,
      remedy: 'Run the program in one namespace, or set the same --leader-election-namespace for all.',
    },
  ]
}

function describeForeignLease({ id, holder }: HeldLease, program: string, sidecar: HeldLease | undefined): Finding {
  const [namespace, name] = id.split('/')
  const consequence = sidecar
    ? `while ${sidecar.holder} leads as stowage sidecar. Both manage the same volumes unless --controllers leaves this work out`
    : `which runs ${program} or a command in its place. \`stowage sidecar\` does not lead until the lease is released`
  return {
    status: 'warning',
    object: `Lease ${id}`,
    message: `It is held by ${holder}, ${consequence}.`,
    remedy: `Stop ${program}, or start the sidecar with --hold-upstream-leases; to see the holder: kubectl get lease ${name} --namespace ${namespace} -o yaml`,
  }
}

const describeExpiredLease = ({ id, holder, expiredMs = 0 }: HeldLease): Finding => ({
  status: 'warning',
  object: `Lease ${id}`,
  message: `It expired ${formatShortAge(Math.round(expiredMs / 1_000))} ago. Its holder ${holder} stopped without releasing it, and no other process leads.`,
  remedy: `kubectl describe lease ${id.split('/')[1]} --namespace ${id.split('/')[0]}`,
})

/** Both programs run the same controllers unless --controllers selects others. */
function describeControllers(heldLeases: readonly HeldLease[]): Finding[] {
  const findHeldLease = (name: string) =>
    heldLeases.find((lease) => lease.id === `kube-system/${name}` && isRenewed(lease))
  const [controllers, manager] = [findHeldLease(CONTROLLERS_LEASE), findHeldLease(UPSTREAM_CONTROLLERS_LEASE)]
  if (!controllers || !manager) return []
  return [
    {
      status: 'warning',
      object: `Lease ${controllers.id}`,
      message: `It is held by ${controllers.holder} while ${manager.holder} leads as kube-controller-manager. Both run the same controllers unless --controllers selects others.`,
      remedy: 'Set --controllers of stowage controllers to the controllers that kube-controller-manager does not run.',
    },
  ]
}

function describeHolders(heldLeases: readonly HeldLease[], drivers: readonly string[]): string {
  const sidecarLeases = new Set(drivers.map(sidecarLease))
  const holders = heldLeases.filter((lease) => sidecarLeases.has(lease.name) && isRenewed(lease))
  return holders.length === 0
    ? 'No upstream sidecar and no other process holds a lease that stowage sidecar needs.'
    : `${holders.map(({ id, holder }) => `${holder} leads with the lease ${id}`).join('; ')}.`
}
