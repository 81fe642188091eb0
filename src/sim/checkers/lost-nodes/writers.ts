// Rule `two writers`: no volume is mounted writable on two running machines at once. It compares the actual mounts with each
// other, and so does not depend on what the server knows about a node that is cut off.
//
// A machine writes while it runs, even if it is cut off from the server. A stale mount (followStaleMounts) is not writable. The
// rule concerns drivers with attachments: without them, as in Kubernetes, nothing keeps the pods of one claim on one node.
import { isFenced } from '../../../api/kinds/node/fencing.ts'
import type { System } from '../../engine/system.ts'
import type { View } from '../../engine/view.ts'
import { nodeOfId } from '../../plan/catalog.ts'
import { type CheckContext, listAssets, parseAsset } from '../context.ts'
import { supportsAttachments } from '../mounts.ts'

const SHARED_MODES = ['ReadWriteMany', 'ReadOnlyMany']

export function checkWriters({ system, view, report }: CheckContext, isStale: IsStaleMount): { check(): void } {
  const reported = new Set<string>()

  system.onCall(check)
  view.onCommit(check)

  function check(): void {
    for (const { asset, driverVolume } of listAssets(system)) {
      const mountedIds = Object.keys(driverVolume.onNodes)
      if (mountedIds.length < 2) continue
      const { driver, handle } = parseAsset(asset)
      if (!supportsAttachments(system, driver)) continue
      const modes = view.volumesOf(driver, handle)[0]?.spec?.accessModes ?? []
      if (modes.length === 0 || modes.some((mode) => SHARED_MODES.includes(mode))) continue
      const writers = mountedIds
        .map(nodeOfId)
        .filter((node) => isWritable(asset, node))
        .sort()
      const text = `${asset} is mounted on ${writers.join(' and ')}, which all run`
      if (writers.length < 2 || reported.has(text)) continue
      reported.add(text)
      report('two writers', text)
    }
  }

  function isWritable(asset: string, name: string): boolean {
    const node = system.nodes.get(name)
    if (!node?.isRunning || !node.mounts().some(({ volume }) => volume === asset)) return false
    return !isStale(asset, name)
  }

  return { check }
}

/** Whether a mount is stale: excluded from the rules `two writers` and `wrong mount`. */
export type IsStaleMount = (asset: string, node: string) => boolean

/**
 * Follows the mounts that are left on a suspended machine when an administrator has confirmed that it is off, and the volume is
 * then detached. The machine resumes with such a mount, but cannot write through it: the storage accepts writes only where the
 * volume is attached.
 *
 * A mount is stale only while all of this holds, and otherwise counts as writable:
 *
 *   - The detachment took effect while the machine did not run. A machine that runs, even if it is cut off, may have writes in
 *     its cache that the detachment loses, and one that is suspended later may have written until then.
 *   - The node was fenced at that moment: without the confirmation of an administrator, a silent machine may run.
 *   - The node has been fenced since. The end of the quarantine states that the agent has unmounted the volumes of removed pods.
 *   - The volume has not been attached to the node again, which makes the old mount writable.
 *
 * Create it before the checkers that use it, so that it sees each call and commit first.
 */
export function followStaleMounts(system: System, view: View): IsStaleMount {
  /** `asset node` pairs that were attached when last observed. */
  let attachedKeys = new Set<string>()
  let staleKeys = new Set<string>()
  /** The nodes that were fenced before the commit in progress. */
  let fencedNodes = new Set<string>()

  /** Runs before each change of a machine or a fence, so that a detachment since the last run happened in the current state. */
  function observe(): void {
    const [wereAttached, wereStale] = [attachedKeys, staleKeys]
    attachedKeys = new Set()
    staleKeys = new Set()
    for (const { asset, driverVolume } of listAssets(system)) {
      for (const nodeId of Object.keys(driverVolume.attachments)) attachedKeys.add(`${asset} ${nodeOfId(nodeId)}`)
      for (const node of Object.keys(driverVolume.onNodes).map(nodeOfId)) {
        const mountKey = `${asset} ${node}`
        if (attachedKeys.has(mountKey) || !fencedNodes.has(node)) continue
        const becomesStale = wereAttached.has(mountKey) && system.nodes.get(node)?.isRunning === false
        if (becomesStale || wereStale.has(mountKey)) staleKeys.add(mountKey)
      }
    }
  }

  system.beforeMachineChange(observe)
  system.onCall(observe)
  view.onCommit((changes) => {
    if (!changes.some(({ of }) => of === 'node')) return
    observe()
    fencedNodes = new Set([...view.nodes].flatMap(([name, node]) => (isFenced(node) ? name : [])))
    observe()
  })
  return (asset, node) => {
    observe()
    return staleKeys.has(`${asset} ${node}`)
  }
}
