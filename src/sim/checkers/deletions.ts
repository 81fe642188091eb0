// Rule `wrong deletion`: no process calls DeleteVolume while the volume's policy is not Delete or a claim is bound to it. The
// rule applies to the state that the caller last read, because the caller may not have received later changes.
import type { Kind } from '../../api/kind.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { keyOfObject } from '../../client/index.ts'
import { assetName, type ObjectOf, type View } from '../engine/view.ts'
import { MEMORY_PLUGIN_ASSETS } from '../plan/catalog.ts'
import { type CheckContext, type ClientObserver, isBound } from './context.ts'

interface VolumeRead {
  readonly requestedMs: number
  readonly answeredMs: number
}

/** Callers delete within this time after reading the volume, even if they wait for another call to end in between. */
const READ_AGE_MS_MAX = 30_000

export function checkDeletions({ system, view, report }: CheckContext): ClientObserver {
  const { simulation } = system.cluster
  /** Volumes that must not be deleted, with the reason and the time at which it began to apply. */
  const protections = new Map<string, { readonly reason: string; readonly sinceMs: number }>()
  /** Last reads of volumes by the present incarnation of each process. */
  const reads = new Map<string, Map<string, VolumeRead>>()

  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of === 'volume') updateProtection(change.key)
      else if (change.of === 'claim')
        for (const claim of [change.old, change.next]) updateProtection(claim?.spec?.volumeName ?? '')
    }
  })
  system.onCall(({ process, driver, method, volume }, phase) => {
    if (phase === 'begins' && method === 'DeleteVolume') checkDeletion(process, driver, volume)
  })
  system.onPluginDelete((process, volumeName) => checkDeletion(process, MEMORY_PLUGIN_ASSETS, volumeName))

  function checkDeletion(process: string, driver: string, handle: string): void {
    for (const { metadata } of view.volumesOf(driver, handle)) {
      const { name = '' } = metadata
      const protection = protections.get(name)
      if (protection && protection.sinceMs < knownUntilMs(reads.get(process)?.get(name))) {
        report(
          'wrong deletion',
          `${process} deletes ${assetName(driver, handle)}, but volume ${name} ${protection.reason}`,
        )
      }
    }
  }

  function updateProtection(name: string): void {
    const volume = view.volumes.get(name)
    const reason = volume && explainProtection(volume, view)
    if (reason === undefined) protections.delete(name)
    else protections.set(name, { reason, sinceMs: protections.get(name)?.sinceMs ?? simulation.nowMs })
  }

  /**
   * Returns the time of the newest state that the caller has read. A stale read counts as if made READ_AGE_MS_MAX ago, no read as
   * if made now.
   */
  function knownUntilMs(read: VolumeRead | undefined): number {
    if (!read) return simulation.nowMs
    const isFresh = simulation.nowMs - read.answeredMs < READ_AGE_MS_MAX
    return isFresh ? read.requestedMs : Math.max(read.requestedMs, simulation.nowMs - READ_AGE_MS_MAX)
  }

  return {
    wrapClient(process, client) {
      const processReads = new Map<string, VolumeRead>()
      reads.set(process, processReads)
      return {
        ...client,
        get: async (kind, ref, options) => {
          const requestedMs = simulation.nowMs
          const object = await client.get(kind, ref, options)
          if (kind === (persistentVolumeKind as Kind))
            processReads.set(ref.name, { requestedMs, answeredMs: simulation.nowMs })
          return object
        },
      }
    },
  }
}

function explainProtection({ metadata: { name = '' }, spec }: ObjectOf<'volume'>, view: View): string | undefined {
  if (spec?.persistentVolumeReclaimPolicy !== 'Delete') return `has the policy ${spec?.persistentVolumeReclaimPolicy}`
  for (const claim of view.claims.values()) {
    if (isBound(claim) && claim.spec?.volumeName === name) return `is bound to the claim ${keyOfObject(claim)}`
  }
  return undefined
}
