// Which attached volumes this node has in use, told in its status before any of them is mounted and until it is unmounted:
// whoever detaches volumes waits for it. The names are the kubelet's.
import { attachedVolumeNameOf } from '../../volumes/attachment-names.ts'
import type { VolumeIdentity } from './books.ts'

export interface VolumesInUse {
  /** Settles once the cluster has been told. */
  add(volume: VolumeIdentity): Promise<void>
  remove(volume: VolumeIdentity): Promise<void>
}

export interface VolumesInUseDeps {
  /** Names that the cluster is told otherwise, before anything is added or removed. */
  readonly atStart: readonly string[]
  report(names: readonly string[]): Promise<void>
}

export function createVolumesInUse({ atStart, report }: VolumesInUseDeps): VolumesInUse {
  const names = new Set(atStart)
  /** Unknown after a report that failed: it may have come through. */
  let told: string | undefined = JSON.stringify([...names].sort())
  let telling: Promise<void> = Promise.resolve()

  /** Many changes at once become one report, and everyone waits for the one that has theirs. */
  async function tell(): Promise<void> {
    const after = telling
      .catch(() => {})
      .then(async () => {
        const all = [...names].sort()
        if (told === JSON.stringify(all)) return
        told = undefined
        await report(all)
        told = JSON.stringify(all)
      })
    telling = after
    await after
  }

  return {
    async add(volume) {
      names.add(attachedVolumeNameOf(volume))
      await tell()
    },
    async remove(volume) {
      names.delete(attachedVolumeNameOf(volume))
      await tell() // also if it was gone before: the report of that may have failed
    },
  }
}
