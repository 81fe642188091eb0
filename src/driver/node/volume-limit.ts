// Limits how many volumes are staged on the node at the same time (--max-volumes-per-node). NodeGetInfo reports the limit, and
// the scheduler respects it; the driver enforces it for all callers. Each volume counts once, however often it is published.
import { volumeLimitReached } from '../errors.ts'
import type { VolumeId } from '../ids.ts'
import type { Records } from '../pool/record-files.ts'
import type { MountRecord } from '../pool/records.ts'

export interface VolumeLimit {
  /** Undefined without a limit. */
  readonly max: number | undefined
  /**
   * Runs the staging of the volume. Throws RESOURCE_EXHAUSTED if the node already has the maximum of other volumes, including
   * those that are being staged.
   */
  run<T>(id: VolumeId, stage: () => Promise<T>): Promise<T>
}

export function createVolumeLimit(
  max: number | undefined,
  mountRecords: Pick<Records<MountRecord>, 'list'>,
): VolumeLimit {
  const stagingIds = new Set<VolumeId>() // volumes that are being staged may have no mount record yet
  return {
    max,
    async run(id, stage) {
      if (max === undefined) return stage()
      const otherIds = new Set(mountRecords.list().flatMap((record) => (record.staged ? [record.id] : [])))
      for (const stagingId of stagingIds) otherIds.add(stagingId)
      otherIds.delete(id)
      if (otherIds.size >= max) throw volumeLimitReached(id, max)
      stagingIds.add(id)
      try {
        return await stage()
      } finally {
        stagingIds.delete(id)
      }
    },
  }
}
