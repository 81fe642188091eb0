// Removes from the driver what a check has left in the inventory.
import { type CsiDriver, CsiError } from '../../csi/index.ts'
import type { Inventory } from './inventory.ts'

/** Codes of a call that the driver is still working on, or whose response did not arrive. */
const PENDING_CODES: ReadonlySet<string> = new Set(['CANCELLED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE', 'ABORTED'])

export interface RemoveDeps {
  readonly csi: CsiDriver
  /** The secrets of DeleteVolume and ControllerUnpublishVolume. */
  readonly deleteSecrets: Readonly<Record<string, string>>
  readonly unpublishSecrets: Readonly<Record<string, string>>
  pause(ms: number): Promise<void>
}

/** A driver may still be working on a cancelled call, and then returns ABORTED. */
const ATTEMPTS_MAX = 4
const RETRY_DELAY_MS = 100

/**
 * Undoes everything in the reverse order of a volume's lifecycle. Returns what could not be removed, with the driver's response.
 */
export async function removeLeftovers(inventory: Inventory, { csi, pause, ...secrets }: RemoveDeps): Promise<string[]> {
  const problems: string[] = []
  const undo = async (problem: string, call: () => Promise<unknown>): Promise<boolean> => {
    for (let attempts = 1; ; attempts++) {
      try {
        await call()
        return true
      } catch (error) {
        if (!(error instanceof CsiError)) throw error
        if (error.codeName === 'NOT_FOUND') return true // the driver no longer has the volume; leftover mounts are found later
        if (attempts < ATTEMPTS_MAX && error.codeName !== 'UNIMPLEMENTED') {
          await pause(RETRY_DELAY_MS * attempts)
          continue
        }
        problems.push(`${problem}: ${error.codeName} (${error.message})`)
        return false
      }
    }
  }
  for (const [key, { volumeId, path }] of inventory.published) {
    await undo(`volume ${volumeId} stays published at ${path}`, () =>
      csi.node.nodeUnpublishVolume({ volumeId, targetPath: path }),
    )
    inventory.forget('published', key)
  }
  for (const [key, { volumeId, path }] of inventory.staged) {
    await undo(`volume ${volumeId} stays staged at ${path}`, () =>
      csi.node.nodeUnstageVolume({ volumeId, stagingTargetPath: path }),
    )
    inventory.forget('staged', key)
  }
  for (const [key, { volumeId, nodeId }] of inventory.attachments) {
    const request = { volumeId, nodeId, secrets: secrets.unpublishSecrets }
    await undo(`volume ${volumeId} stays attached to node ${nodeId}`, () =>
      csi.controller.controllerUnpublishVolume(request),
    )
    inventory.forget('attachments', key)
  }
  // Without its id, a volume can only be found by creating it again.
  for (const [name, request] of inventory.unknownCreations) {
    const isKnown = await undo(`the volume named ${name} may exist`, async () => {
      try {
        await csi.controller.createVolume(request)
      } catch (error) {
        if (!(error instanceof CsiError) || PENDING_CODES.has(error.codeName)) throw error
        inventory.forget('unknownCreations', name) // UNKNOWN or INTERNAL again; `fail` has dropped all others
      }
    })
    if (!isKnown) inventory.forget('unknownCreations', name)
  }
  for (const [volumeId, { name }] of inventory.volumes) {
    await undo(`volume ${volumeId} (${name}) stays`, () =>
      csi.controller.deleteVolume({ volumeId, secrets: secrets.deleteSecrets }),
    )
    inventory.forget('volumes', volumeId)
  }
  return problems
}
