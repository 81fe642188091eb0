// Actions of administrators on volumes: create static ones, import driver volumes, change the reclaim policy, label, release
// and delete.

import { type DriverName, NODES, TOPOLOGY_KEY } from '../plan/catalog.ts'
import type { Manifest, Ref, UserAction } from '../plan/plan.ts'
import { SELECTED_LABELS, STATIC_CLASS } from './claim-actions.ts'
import { type Draft, isBlockName, pickObject, someClaim, someVolumeName } from './draft.ts'

/** The handle prefix of imported volumes. */
export const IMPORT_PREFIX = 'imported-'

export function importVolume(draft: Draft): UserAction {
  const { rng } = draft
  const driver = rng.pickWeighted<DriverName>([
    [5, 'net.sim'],
    [2, 'local.sim'],
    [2, 'basic.sim'],
  ])
  const handle = `${IMPORT_PREFIX}${++draft.imports}`
  // Imported volumes are in the driver's first pool; local.sim has that pool on the first node.
  const firstNode = { matchExpressions: [{ key: TOPOLOGY_KEY, operator: 'In', values: [NODES[0]] }] }
  const object = generateVolume(draft, {
    csi: { driver, volumeHandle: handle },
    persistentVolumeReclaimPolicy: rng.pick(['Retain', 'Retain', 'Delete']),
    ...(driver === 'local.sim' ? { nodeAffinity: { required: { nodeSelectorTerms: [firstNode] } } } : {}),
  })
  return { do: 'import', driver, name: handle, object }
}

export function createVolume(draft: Draft): UserAction {
  const { rng } = draft
  const object = generateVolume(draft, {
    nfs: { server: 'filer.example', path: '/collection' },
    persistentVolumeReclaimPolicy: rng.pickWeighted([
      [12, 'Retain'],
      [1, 'Delete'], // no driver deletes it
      [1, 'Recycle'],
    ]),
  })
  return { do: 'create', kind: 'volume', object }
}

function generateVolume({ rng, volumes }: Draft, fields: Manifest): Manifest {
  const name = someVolumeName(rng)
  volumes.add(name)
  const claimRef = rng.chance(0.2) ? someClaim(rng) : undefined
  const isBlock = rng.chance(claimRef && isBlockName(claimRef.name) ? 0.8 : 0.1)
  const spec = {
    capacity: { storage: `${rng.between(1, 6)}Gi` },
    accessModes: rng.pick([['ReadWriteOnce'], ['ReadWriteOnce', 'ReadWriteMany'], ['ReadWriteOncePod']]),
    storageClassName: rng.pick([STATIC_CLASS, STATIC_CLASS, STATIC_CLASS, '', 'net-now']),
    ...(isBlock ? { volumeMode: 'Block' } : {}),
    ...(claimRef ? { claimRef: { ...claimRef } } : {}),
    ...fields,
  }
  return { metadata: { name, ...(rng.chance(0.5) ? { labels: SELECTED_LABELS } : {}) }, spec }
}

/** Returns the volume of a claim, or a static one. */
function someVolume({ rng, claims, volumes }: Draft): Ref {
  if (volumes.size > 0 && rng.chance(0.3)) return { name: rng.pick([...volumes]) }
  return pickObject(rng, claims, () => someClaim(rng))
}

const editVolume = (ref: Ref, purpose: string, patch: Manifest): UserAction => ({
  do: 'edit',
  kind: 'volume',
  ref,
  patch,
  purpose,
})

export function changePolicy(draft: Draft): UserAction {
  const persistentVolumeReclaimPolicy = draft.rng.pick(['Retain', 'Delete'])
  return editVolume(someVolume(draft), 'policy', { spec: { persistentVolumeReclaimPolicy } })
}

/** Removes the claimRef of a volume. users.ts does this only if the volume is Released. */
export function releaseVolume(draft: Draft): UserAction {
  const { rng, volumes, releasedClaims } = draft
  const isRetained = releasedClaims.length > 0 && rng.chance(0.6)
  const isStatic = volumes.size > 0 && rng.chance(0.5)
  // The volume of any deleted claim may be released.
  const ref = isRetained ? rng.pick(releasedClaims) : isStatic ? { name: rng.pick([...volumes]) } : someClaim(rng)
  return editVolume(ref, 'release', { spec: { claimRef: null } })
}

export function touchVolume(draft: Draft): UserAction {
  const { rng } = draft
  const labels = rng.chance(0.5) ? SELECTED_LABELS : { touched: String(rng.below(100)) }
  return editVolume(someVolume(draft), 'label', { metadata: { labels } })
}

export function deleteVolume(draft: Draft): UserAction {
  const ref = someVolume(draft)
  if (!ref.namespace) draft.volumes.delete(ref.name)
  return { do: 'delete', kind: 'volume', ref }
}
