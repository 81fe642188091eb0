// What administrators do with volumes: put some on the shelf, with storage in a driver or without, change what becomes of
// them, give released ones to the next claim, and take them away.
import { type Draft, isForBlock, likely, someClaim, someVolumeName } from './draft.ts'
import { SELECTED, SHELF } from './make-claim-acts.ts'
import type { Named, ObjectText, PeopleAct } from './plan.ts'
import { type DriverName, NODES, PLACE } from './universe.ts'

/** Storage that was there before us has handles that begin so. */
export const BY_HAND = 'hand-'

export function importVolume(draft: Draft): PeopleAct {
  const { dice } = draft
  const driver = dice.weighted<DriverName>([
    [5, 'net.sim'],
    [2, 'local.sim'],
    [2, 'basic.sim'],
  ])
  const handle = `${BY_HAND}${++draft.imports}`
  // Imports are in the driver's first pool, which of the local one is the first node's.
  const place = { matchExpressions: [{ key: PLACE, operator: 'In', values: [NODES[0]] }] }
  const object = volumeText(draft, {
    csi: { driver, volumeHandle: handle },
    persistentVolumeReclaimPolicy: dice.pick(['Retain', 'Retain', 'Delete']),
    ...(driver === 'local.sim' ? { nodeAffinity: { required: { nodeSelectorTerms: [place] } } } : {}),
  })
  return { do: 'import', driver, name: handle, object }
}

export function createVolume(draft: Draft): PeopleAct {
  const { dice } = draft
  const object = volumeText(draft, {
    nfs: { server: 'filer.example', path: '/shelf' },
    persistentVolumeReclaimPolicy: dice.weighted([
      [12, 'Retain'],
      [1, 'Delete'], // nobody here can
      [1, 'Recycle'],
    ]),
  })
  return { do: 'create', kind: 'volume', object }
}

function volumeText({ dice, volumes }: Draft, parts: ObjectText): ObjectText {
  const name = someVolumeName(dice)
  volumes.add(name)
  const reservedFor = dice.chance(0.2) ? someClaim(dice) : undefined
  const isBlock = dice.chance(reservedFor && isForBlock(reservedFor.name) ? 0.8 : 0.1)
  const spec = {
    capacity: { storage: `${dice.between(1, 6)}Gi` },
    accessModes: dice.pick([['ReadWriteOnce'], ['ReadWriteOnce', 'ReadWriteMany'], ['ReadWriteOncePod']]),
    storageClassName: dice.pick([SHELF, SHELF, SHELF, '', 'net-now']),
    ...(isBlock ? { volumeMode: 'Block' } : {}),
    ...(reservedFor ? { claimRef: { ...reservedFor } } : {}),
    ...parts,
  }
  return { metadata: { name, ...(dice.chance(0.5) ? { labels: SELECTED } : {}) }, spec }
}

/** That of a claim, or one from the shelf. */
function someVolume({ dice, claims, volumes }: Draft): Named {
  if (volumes.size > 0 && dice.chance(0.3)) return { name: dice.pick([...volumes]) }
  return likely(dice, claims, () => someClaim(dice))
}

const editVolume = (of: Named, why: string, patch: ObjectText): PeopleAct => ({
  do: 'edit',
  kind: 'volume',
  of,
  patch,
  why,
})

export function changePolicy(draft: Draft): PeopleAct {
  const persistentVolumeReclaimPolicy = draft.dice.pick(['Retain', 'Delete'])
  return editVolume(someVolume(draft), 'policy', { spec: { persistentVolumeReclaimPolicy } })
}

/** Whoever performs it looks first: only what is released is given back. */
export function giveBack(draft: Draft): PeopleAct {
  const { dice, volumes, released } = draft
  const isKept = released.length > 0 && dice.chance(0.6)
  const isOfShelf = volumes.size > 0 && dice.chance(0.5)
  // Released are volumes of claims that are gone: any may be.
  const of = isKept ? dice.pick(released) : isOfShelf ? { name: dice.pick([...volumes]) } : someClaim(dice)
  return editVolume(of, 'give back', { spec: { claimRef: null } })
}

export function touchVolume(draft: Draft): PeopleAct {
  const { dice } = draft
  const labels = dice.chance(0.5) ? SELECTED : { touched: String(dice.roll(100)) }
  return editVolume(someVolume(draft), 'label', { metadata: { labels } })
}

export function deleteVolume(draft: Draft): PeopleAct {
  const of = someVolume(draft)
  if (!of.namespace) draft.volumes.delete(of.name)
  return { do: 'delete', kind: 'volume', of }
}
