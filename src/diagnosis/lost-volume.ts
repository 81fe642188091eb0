// Diagnoses a claim whose volume exists on a lost node only, and the policy of its class for such volumes.
import type { Stored } from '../api/kind.ts'
import { lostSince } from '../api/kinds/node/fencing.ts'
import type { Node } from '../api/kinds/node/node-schema.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'
import { formatLostVolumePolicy, readLostVolumePolicy } from '../volumes/lost-volume-policy.ts'
import { existsOnlyOn } from '../volumes/node-affinity.ts'
import { type Claim, type Cluster, claimSubject } from './cluster.ts'
import { type Diagnosis, destructiveFix, fix } from './diagnosis.ts'
import { diagnoseNodeHealth } from './node-health.ts'
import type { Snapshot } from './snapshot.ts'

type StoredNode = Readonly<Stored<Node>>
type Volume = Readonly<Stored<PersistentVolume>>

/** Returns the names of the volumes that exist on a lost node only. */
export function listLostVolumes({ nodes, volumes }: Pick<Snapshot, 'nodes' | 'volumes'>): ReadonlySet<string> {
  const lostNodes = listLostNodes(nodes)
  if (lostNodes.length === 0) return new Set()
  return new Set(volumes.filter((volume) => findOnlyNode(volume, lostNodes)).map(({ metadata }) => metadata.name))
}

const listLostNodes = (nodes: readonly StoredNode[]): readonly StoredNode[] =>
  nodes.filter((node) => lostSince(node) !== undefined)

const findOnlyNode = (volume: Volume, nodes: readonly StoredNode[]): StoredNode | undefined =>
  nodes.find(({ metadata }) => existsOnlyOn(volume, { name: metadata.name, labels: metadata.labels ?? {} }))

/** Returns undefined if the volume is not lost. */
export function diagnoseLostVolume(claim: Claim, volume: Volume, cluster: Cluster): Diagnosis | undefined {
  const node = findOnlyNode(volume, listLostNodes(cluster.snapshot.nodes))
  if (!node) return undefined
  const { namespace = '', name } = claimSubject(claim)
  const nodeName = node.metadata.name
  return {
    subject: claimSubject(claim),
    state: 'failed',
    reason: 'VolumeLost',
    message: `the claim is bound to ${volume.metadata.name}, which exists on the node ${nodeName} only, and the node is lost; ${describePolicy(volume, cluster)}`,
    fixes: [
      fix(`start the machine of ${nodeName}: the volume is usable again`),
      destructiveFix(
        'or recreate the claim without the data; a stateful set does so from its template',
        `kubectl -n ${namespace} delete pvc ${name}`,
      ),
    ],
    children: [diagnoseNodeHealth(nodeName, cluster)],
  }
}

function describePolicy({ spec }: Readonly<PersistentVolume>, cluster: Cluster): string {
  const className = spec?.storageClassName ?? ''
  const storageClass = className ? cluster.caches.classes.get(className) : undefined
  const parsed = storageClass && readLostVolumePolicy(storageClass)
  if (!parsed)
    return `the class ${className || '""'} sets no policy for lost volumes, so the default of the controllers applies`
  if (parsed.is === 'invalid')
    return `the policy of the class ${className} for lost volumes is invalid and counts as wait: ${parsed.message}`
  const { policy } = parsed
  const isKept = policy.do === 'delete' && spec?.persistentVolumeReclaimPolicy !== 'Delete'
  const exception = isKept
    ? `, and the reclaim policy ${spec?.persistentVolumeReclaimPolicy ?? 'Retain'} of the volume prevents the deletion`
    : ''
  return `the policy of the class ${className} for lost volumes is ${formatLostVolumePolicy(policy)}${exception}`
}
