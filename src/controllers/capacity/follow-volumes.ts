// Reports the affected items when a volume of the driver is created, deleted, expanded or modified, and when the selected
// node of a claim is cleared, for example for lack of capacity.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf, claimClassName } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import { SELECTED_NODE } from '../../volumes/names.ts'
import { type AffectedItems, affectedItemsOf, itemsOfSegment } from './affected-items.ts'
import type { DesiredItems } from './desired-items.ts'
import type { Segments } from './segments.ts'

export interface FollowVolumesOptions {
  readonly driverName: string
  readonly volumes: Cache<PersistentVolume>
  readonly claims: Cache<PersistentVolumeClaim>
  readonly segments: Pick<Segments, 'segmentOfNode'>
  readonly desiredItems: Pick<DesiredItems, 'hasClass'>
  readonly onChange: (items: AffectedItems) => void
}

type Volume = Readonly<PersistentVolume>
type Claim = Readonly<PersistentVolumeClaim>

/** Requires synced caches. Existing objects are not reported. Returns a function that stops the reports. */
export function followVolumes(options: FollowVolumesOptions): () => void {
  const { driverName, volumes, claims, segments, desiredItems, onChange } = options
  let isReplay = true // a new subscriber receives existing objects as added

  function reportVolume(...versions: readonly (Volume | undefined)[]): void {
    if (isReplay) return
    for (const volume of versions) {
      if (volume?.spec?.csi?.driver === driverName) for (const items of affectedItemsOf(volume)) onChange(items)
    }
  }

  function reportClaim(next: Claim, old: Claim): void {
    const { volumeName } = next.spec ?? {}
    if (volumeName) {
      if (providedFieldsOf(next) !== providedFieldsOf(old)) reportVolume(volumes.get({ name: volumeName }))
      return
    }
    const node = annotationOf(old, SELECTED_NODE)
    if (!node || annotationOf(next, SELECTED_NODE) !== undefined) return
    const segment = desiredItems.hasClass(claimClassName(next) ?? '') ? segments.segmentOfNode(node) : undefined
    if (segment) onChange(itemsOfSegment(segment))
  }

  const stops = [
    volumes.subscribe({
      added: (volume) => reportVolume(volume),
      updated: (next, old) => {
        if (capacityFieldsOf(next) !== capacityFieldsOf(old)) reportVolume(next, old)
      },
      deleted: (volume) => reportVolume(volume),
    }),
    claims.subscribe({ updated: reportClaim }),
  ]
  isReplay = false
  return () => {
    for (const stop of stops) stop()
  }
}

/** Returns the fields that affect capacity, for comparison. */
const capacityFieldsOf = ({ spec }: Volume): string =>
  JSON.stringify([spec?.capacity, spec?.volumeAttributesClassName, spec?.nodeAffinity])

/** Returns the status fields that change when an expansion or modification completes, for comparison. */
const providedFieldsOf = ({ status }: Claim): string =>
  JSON.stringify([status?.capacity, status?.currentVolumeAttributesClassName])
