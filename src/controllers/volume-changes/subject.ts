// Finds the volume of a bound claim that this process may change: claim and volume reference each other, the volume belongs
// to the driver or plugin, and it is accessible from the node that this instance of the driver serves.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import { isReachableFrom } from '../../volumes/node-affinity.ts'
import type { Subject } from './change.ts'

export interface ServedNode {
  readonly name: string
  /** The topology segments of the node. Absent if the driver reports no topology: every volume is then accessible. */
  readonly segments?: Readonly<Record<string, string>>
}

export interface SubjectDeps {
  /** Whether the volume belongs to the driver or plugin. */
  isOwnVolume(volume: Readonly<PersistentVolume>): boolean
  readonly volumes: Cache<PersistentVolume>
  /** The only node that this instance of the driver serves. By default it serves all nodes. */
  readonly node?: ServedNode
}

/** Returns undefined if this process must not change the claim's volume. */
export function findSubject(claim: Subject['claim'], { isOwnVolume, volumes, node }: SubjectDeps): Subject | undefined {
  const volume = isBound(claim) ? volumes.get(claim.spec?.volumeName) : undefined
  if (!volume || !isOwnVolume(volume)) return undefined
  const { namespace, uid } = volume.spec?.claimRef ?? {}
  if (namespace !== claim.metadata.namespace || uid !== claim.metadata.uid) return undefined
  if (node?.segments && !isReachableFrom(volume, { name: node.name, labels: node.segments })) return undefined
  return { claim, volume }
}

/** Returns a filter for a CSI driver's volumes. */
export const createVolumeFilter =
  (driverName: string): SubjectDeps['isOwnVolume'] =>
  ({ spec }) =>
    spec?.csi?.driver === driverName

export const isBound = ({ spec, status }: Readonly<PersistentVolumeClaim>): boolean =>
  status?.phase === 'Bound' && Boolean(spec?.volumeName)
