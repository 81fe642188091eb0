// No two operations of one volume run at once, whoever asks for them. Judged by what callers wait for: one that died, or
// that has given up waiting, waits no more.

import type { DriverCall, System } from '../engine/system.ts'
import { nodeOfId } from '../plan/catalog.ts'
import type { CheckContext } from './context.ts'

/** They change something; reads may run beside anything. */
const CONTROLLER = [
  'CreateVolume',
  'DeleteVolume',
  'ControllerExpandVolume',
  'ControllerModifyVolume',
  'ControllerPublishVolume',
  'ControllerUnpublishVolume',
]
const NODE = ['NodeStageVolume', 'NodeUnstageVolume', 'NodePublishVolume', 'NodeUnpublishVolume', 'NodeExpandVolume']

export function checkOverlaps({ system, report }: CheckContext): void {
  /** Calls that are under way, by what they are about. */
  const open = new Map<string, Set<DriverCall>>()
  /** What each volume was made as. */
  const names = new Map<string, string>()

  system.onCall((call, phase) => {
    const place = placeOf(call)
    if (!place) return
    const calls = open.get(place) ?? new Set()
    open.set(place, calls)
    if (phase === 'ends') {
      calls.delete(call)
      if (calls.size === 0) open.delete(place)
      return
    }
    for (const other of calls) {
      if (!isAwaited(system, other)) calls.delete(other)
      else if (!mayRunBeside(system, call, other)) {
        report('overlap', `${textOf(call)} begins while ${textOf(other)} is under way`)
      }
    }
    calls.add(call)
  })

  function placeOf({ driver, method, volume, process }: DriverCall): string | undefined {
    if (!volume) return undefined
    const held = system.drivers.get(driver)?.state().volumes[volume]
    if (held) names.set(`${driver}^${volume}`, held.name)
    const name = names.get(`${driver}^${volume}`) ?? volume
    if (CONTROLLER.includes(method)) return `${driver} ${name}`
    return NODE.includes(method) ? `${driver} ${name} on ${process}` : undefined
  }
}

function isAwaited(system: System, { process, incarnation }: DriverCall): boolean {
  const caller = system.processes.get(process)
  return caller?.starts === incarnation && caller.alive
}

/**
 * Two excuses. A process that stands still cannot give up what it waits for, and others take over. Where a driver's
 * controllers are processes of their own (provisioner, resizer, attacher), nothing stands between them: a claim may be
 * deleted while its volume grows, and drivers answer ABORTED. Each kind still does one thing at a time.
 */
function mayRunBeside(system: System, call: DriverCall, other: DriverCall): boolean {
  if (call.process === other.process) return false
  if (system.processes.get(other.process)?.isFrozen) return true
  return roleOf(call) !== roleOf(other)
}

/** `resizer-net.sim-2` is one of `resizer-net.sim`. */
const roleOf = ({ process }: DriverCall): string => process.replace(/-\d+$/, '')

const textOf = ({ process, method, driver, volume }: DriverCall): string =>
  `${method} ${driver}^${volume} of ${process}`

export const nodeOfCall = ({ process, request }: DriverCall): string => {
  const { nodeId } = request as unknown as { readonly nodeId?: string }
  return nodeId ? nodeOfId(nodeId) : process.replace(/^agent-/, '')
}
