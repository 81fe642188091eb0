// Rule `overlap`: no two operations on one volume run at once. An operation counts while its caller waits for it: not after the
// caller crashed or timed out.
import type { DriverCall, System } from '../engine/system.ts'
import { nodeOfId } from '../plan/catalog.ts'
import type { CheckContext } from './context.ts'

/** Operations that change something; reads may run at any time. */
const CONTROLLER_METHODS = [
  'CreateVolume',
  'DeleteVolume',
  'ControllerExpandVolume',
  'ControllerModifyVolume',
  'ControllerPublishVolume',
  'ControllerUnpublishVolume',
]
const NODE_METHODS = [
  'NodeStageVolume',
  'NodeUnstageVolume',
  'NodePublishVolume',
  'NodeUnpublishVolume',
  'NodeExpandVolume',
]

export function checkOverlaps({ system, report }: CheckContext): void {
  /** Calls in progress, by the volume they concern. */
  const openCalls = new Map<string, Set<DriverCall>>()
  /** The name that each volume was created with. */
  const names = new Map<string, string>()

  system.onCall((call, phase) => {
    const lockKey = lockKeyOf(call)
    if (!lockKey) return
    const calls = openCalls.get(lockKey) ?? new Set()
    openCalls.set(lockKey, calls)
    if (phase === 'ends') {
      calls.delete(call)
      if (calls.size === 0) openCalls.delete(lockKey)
      return
    }
    for (const otherCall of calls) {
      if (!isAwaited(system, otherCall)) calls.delete(otherCall)
      else if (!mayOverlap(system, call, otherCall)) {
        report('overlap', `${describeCall(call)} begins during ${describeCall(otherCall)}`)
      }
    }
    calls.add(call)
  })

  function lockKeyOf({ driver, method, volume, process }: DriverCall): string | undefined {
    if (!volume) return undefined
    const driverVolume = system.drivers.get(driver)?.state().volumes[volume]
    if (driverVolume) names.set(`${driver}^${volume}`, driverVolume.name)
    const name = names.get(`${driver}^${volume}`) ?? volume
    if (CONTROLLER_METHODS.includes(method)) return `${driver} ${name}`
    return NODE_METHODS.includes(method) ? `${driver} ${name} on ${process}` : undefined
  }
}

function isAwaited(system: System, { process, incarnation }: DriverCall): boolean {
  const caller = system.processes.get(process)
  return caller?.starts === incarnation && caller.alive
}

/**
 * There are three exemptions. A frozen process cannot cancel its call, and another process takes over. Sidecars
 * (provisioner, resizer, attacher) do not coordinate: a claim may be deleted while its volume expands, and drivers return
 * ABORTED; each sidecar still runs one operation per volume at a time. Of two provisioners without leader election, one can
 * save a volume while the other still awaits CreateVolume for it. If the claim is then deleted, the other provisioner calls
 * DeleteVolume with the volume ID, which it cannot match to the name in its own CreateVolume call.
 */
function mayOverlap(system: System, call: DriverCall, otherCall: DriverCall): boolean {
  if (call.process === otherCall.process)
    return (
      system.setup.secondProvisioner === true && call.method === 'DeleteVolume' && otherCall.method === 'CreateVolume'
    )
  if (system.processes.get(otherCall.process)?.isFrozen) return true
  return roleOf(call) !== roleOf(otherCall)
}

/** `resizer-net.sim-2` has the role `resizer-net.sim`. */
const roleOf = ({ process }: DriverCall): string => process.replace(/-\d+$/, '')

const describeCall = ({ process, method, driver, volume }: DriverCall): string =>
  `${method} ${driver}^${volume} of ${process}`

export const nodeOfCall = ({ process, request }: DriverCall): string => {
  const { nodeId } = request as unknown as { readonly nodeId?: string }
  return nodeId ? nodeOfId(nodeId) : process.replace(/^agent-/, '')
}
