// Which claims have a volume that this process may change: both sides say that they belong together, the volume is the
// driver's, and it is where this instance of the driver is.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import { isReachableFrom } from '../../volumes/node-affinity.ts'
import type { Subject } from './change.ts'

export interface ServedNode {
  readonly name: string
  /** Where the driver says the node is. Absent: it does not tell, and everything is reached from there. */
  readonly segments?: Readonly<Record<string, string>>
}

export interface SubjectDeps {
  readonly driverName: string
  readonly volumes: Cache<PersistentVolume>
  /** The node this instance of the driver serves alone; absent: it serves all. */
  readonly node?: ServedNode
}

export function subjectOf(
  claim: Readonly<PersistentVolumeClaim>,
  { driverName, volumes, node }: SubjectDeps,
): Subject | undefined {
  const volume = isBound(claim) ? volumes.get(claim.spec?.volumeName ?? '') : undefined
  if (!volume || volume.spec?.csi?.driver !== driverName) return undefined
  const { namespace, uid } = volume.spec.claimRef ?? {}
  if (namespace !== claim.metadata.namespace || uid !== claim.metadata.uid) return undefined
  if (node?.segments && !isReachableFrom(volume, { name: node.name, labels: node.segments })) return undefined
  return { claim, volume }
}

export const isBound = ({ spec, status }: Readonly<PersistentVolumeClaim>): boolean =>
  status?.phase === 'Bound' && Boolean(spec?.volumeName)
