// Rule `two writers`: no volume is mounted writable on two running machines at once. It compares the actual mounts with each other, and
// so does not depend on what the server knows about a node that is cut off.
//
// A machine writes while it runs, even if it is cut off from the server. A volume that is detached while the machine is off or
// suspended, which an administrator has confirmed, is no longer writable through the mount that is left: the storage rejects it.
import type { System } from '../engine/system.ts'
import { nodeOfId } from '../plan/catalog.ts'
import { type CheckContext, listAssets, parseAsset } from './context.ts'
import { supportsAttachments } from './mounts.ts'

const SHARED_MODES = ['ReadWriteMany', 'ReadOnlyMany']

export function checkWriters({ system, view, report }: CheckContext, isStale: StaleMounts): { check(): void } {
  const reported = new Set<string>()

  system.onCall(check)
  view.onCommit(check)

  function check(): void {
    for (const { asset, driverVolume } of listAssets(system)) {
      const mountedIds = Object.keys(driverVolume.onNodes)
      if (mountedIds.length < 2) continue
      const { driver, handle } = parseAsset(asset)
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

/** Whether a mount was left behind by a volume that was detached while its machine was off or suspended. */
export type StaleMounts = (asset: string, node: string) => boolean

/** Create it before the checkers that use it, so that it sees each call first. */
export function followStaleMounts(system: System): StaleMounts {
  const mountKeys = new Set<string>()
  system.onCall(() => {
    for (const { asset, driverVolume } of listAssets(system))
      for (const nodeId of Object.keys(driverVolume.onNodes)) {
        const mountKey = `${asset} ${nodeOfId(nodeId)}`
        if (driverVolume.attachments[nodeId]) mountKeys.delete(mountKey)
        else if (
          system.nodes.get(nodeOfId(nodeId))?.isRunning === false &&
          supportsAttachments(system, parseAsset(asset).driver)
        )
          mountKeys.add(mountKey)
      }
  })
  return (asset, node) => mountKeys.has(`${asset} ${node}`)
}
