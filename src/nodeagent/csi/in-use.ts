// Which attached volumes this node has in use, told in its status before any of them is mounted and until it is unmounted:
// whoever detaches volumes waits for it. The names are the kubelet's.
import { attachedVolumeNameOf } from '../../controllers/attaching/names.ts'
import type { VolumeIdentity } from './books.ts'

export interface VolumesInUse {
  /** Settles once the cluster has been told. */
  add(volume: VolumeIdentity): Promise<void>
  remove(volume: VolumeIdentity): Promise<void>
}

export interface VolumesInUseDeps {
  /** What is staged or published at the start. */
  readonly atStart: readonly VolumeIdentity[]
  report(names: readonly string[]): Promise<void>
}

export function createVolumesInUse({ atStart, report }: VolumesInUseDeps): VolumesInUse {
  const names = new Set(atStart.map(attachedVolumeNameOf))
  let told = ''
  let telling: Promise<void> = Promise.resolve()

  /** Many changes at once become one report, and everyone waits for the one that has theirs. */
  async function tell(): Promise<void> {
    const after = telling
      .catch(() => {})
      .then(async () => {
        const all = [...names].sort()
        if (told === JSON.stringify(all)) return
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
      if (names.delete(attachedVolumeNameOf(volume))) await tell()
    },
  }
}
