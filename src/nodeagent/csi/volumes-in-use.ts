// Maintains status.volumesInUse of the node. An attached volume is listed before it is mounted and until it is unmounted,
// because the attach-detach controller does not detach a listed volume.
import { attachedVolumeNameOf } from '../../volumes/attachment-names.ts'
import type { VolumeIdentity } from './mount-records.ts'

export interface VolumesInUse {
  /** Settles when the list has been written. */
  add(volume: VolumeIdentity): Promise<void>
  remove(volume: VolumeIdentity): Promise<void>
}

export interface VolumesInUseDeps {
  /** The names in the node's first status. */
  readonly initialNames: readonly string[]
  report(names: readonly string[]): Promise<void>
}

export function createVolumesInUse({ initialNames, report }: VolumesInUseDeps): VolumesInUse {
  const names = new Set(initialNames)
  /** The last written list as JSON. Undefined after a failed write, whose result is unknown. */
  let reportedJson: string | undefined = JSON.stringify([...names].sort())
  let lastFlush: Promise<void> = Promise.resolve()

  /** Merges concurrent changes into one report. Each caller waits for the report that contains its change. */
  async function flush(): Promise<void> {
    const currentFlush = lastFlush
      .catch(() => {})
      .then(async () => {
        const sortedNames = [...names].sort()
        if (reportedJson === JSON.stringify(sortedNames)) return
        reportedJson = undefined
        await report(sortedNames)
        reportedJson = JSON.stringify(sortedNames)
      })
    lastFlush = currentFlush
    await currentFlush
  }

  return {
    async add(volume) {
      names.add(attachedVolumeNameOf(volume))
      await flush()
    },
    async remove(volume) {
      names.delete(attachedVolumeNameOf(volume))
      await flush() // even if it was not listed, because an earlier report may have failed
    },
  }
}
