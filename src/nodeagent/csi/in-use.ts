// status.volumesInUse of this node: a volume is listed before it is mounted and until it is unmounted, and the
// attach-detach controller does not detach a listed volume.
import { attachedVolumeNameOf } from '../../volumes/attachment-names.ts'
import type { VolumeIdentity } from './mount-records.ts'

export interface VolumesInUse {
  /** Settles once the list is written. */
  add(volume: VolumeIdentity): Promise<void>
  remove(volume: VolumeIdentity): Promise<void>
}

export interface VolumesInUseDeps {
  /** Names that the first status already lists. */
  readonly atStart: readonly string[]
  report(names: readonly string[]): Promise<void>
}

export function createVolumesInUse({ atStart, report }: VolumesInUseDeps): VolumesInUse {
  const names = new Set(atStart)
  /** Undefined after a failed report: it may have been written. */
  let reported: string | undefined = JSON.stringify([...names].sort())
  let reporting: Promise<void> = Promise.resolve()

  /** Merges concurrent changes into one report; each caller waits for the report that contains its change. */
  async function flush(): Promise<void> {
    const after = reporting
      .catch(() => {})
      .then(async () => {
        const all = [...names].sort()
        if (reported === JSON.stringify(all)) return
        reported = undefined
        await report(all)
        reported = JSON.stringify(all)
      })
    reporting = after
    await after
  }

  return {
    async add(volume) {
      names.add(attachedVolumeNameOf(volume))
      await flush()
    },
    async remove(volume) {
      names.delete(attachedVolumeNameOf(volume))
      await flush() // also if it was not listed: an earlier report may have failed
    },
  }
}
