// What people do in the crash scenario: they make claims of every sort, wait for what they want to see, and delete.
// Each step says when it is due and when it has been done, so that a server which is down or dies over it is tried again.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { Client } from '../../client/index.ts'
import { isBound } from '../checkers/bindings.ts'
import type { StoreView } from '../checkers/store-view.ts'
import { PLUGIN } from './claims-become-volumes-processes.ts'

export interface Step {
  isDue(): boolean
  act(client: Client): Promise<unknown>
  isDone(): boolean
}

export interface StoryWorld {
  readonly view: StoreView
  readonly driverName: string
  /** Whether the driver has ever been asked for a volume of this name. */
  isAskedFor(volumeName: string): boolean
}

/** What is behind the volume that an administrator made. */
export const PREMADE = 'vol-premade'
const always = () => true

/** Stories go on side by side, the steps of each one after the other. */
export const storiesOf = (world: StoryWorld): Step[][] => [
  [claimed('short', 'fast', world), deletedWhen('short', world, () => isBoundNow('short', world))],
  [claimed('static', 'shelf', world), deletedWhen('static', world, () => isBoundNow('static', world))],
  [claimed('kept', 'careful', world), deletedWhen('kept', world, () => isBoundNow('kept', world))],
  [claimed('hasty', 'fast', world), deletedWhen('hasty', world, () => world.isAskedFor(volumeNameOf('hasty', world)))],
  [
    claimed('robbed', 'fast', world),
    volumeDeleted('robbed', world),
    deletedWhen('robbed', world, () => isVolumeGoing('robbed', world)),
  ],
  [claimed('local', 'memory', world), deletedWhen('local', world, () => isBoundNow('local', world))],
  [claimed('stays', 'fast', world)],
]

export async function prepare(client: Client, driverName: string): Promise<void> {
  const storageClass = (name: string, provisioner: string, reclaimPolicy: string) =>
    client.create(storageClassKind, {
      metadata: { name },
      provisioner,
      reclaimPolicy,
      volumeBindingMode: 'Immediate',
    } as never)
  await storageClass('fast', driverName, 'Delete')
  await storageClass('careful', driverName, 'Retain')
  await storageClass('memory', PLUGIN, 'Delete')
  await client.create(persistentVolumeKind, {
    metadata: { name: 'premade' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: 'shelf',
      csi: { driver: driverName, volumeHandle: PREMADE },
    },
  })
}

const keyOf = (name: string) => `default/${name}`

function claimed(name: string, storageClassName: string, { view }: StoryWorld): Step {
  return {
    isDue: always,
    act: (client) =>
      client.create(persistentVolumeClaimKind, {
        metadata: { namespace: 'default', name },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName },
      }),
    isDone: () => view.claims.has(keyOf(name)),
  }
}

const deletedWhen = (name: string, { view }: StoryWorld, isDue: () => boolean): Step => ({
  isDue,
  act: (client) => client.delete(persistentVolumeClaimKind, { namespace: 'default', name }),
  isDone: () => view.claims.get(keyOf(name))?.metadata.deletionTimestamp !== undefined || !view.claims.has(keyOf(name)),
})

function volumeDeleted(claimName: string, world: StoryWorld): Step {
  const volumeName = () => world.view.claims.get(keyOf(claimName))?.spec?.volumeName ?? ''
  return {
    isDue: () => isBoundNow(claimName, world),
    act: (client) => client.delete(persistentVolumeKind, { name: volumeName() }),
    isDone: () => isVolumeGoing(claimName, world),
  }
}

function isBoundNow(name: string, { view }: StoryWorld): boolean {
  const claim = view.claims.get(keyOf(name))
  return claim !== undefined && isBound(claim)
}

function isVolumeGoing(claimName: string, { view }: StoryWorld): boolean {
  const name = view.claims.get(keyOf(claimName))?.spec?.volumeName
  return name !== undefined && view.volumes.get(name)?.metadata.deletionTimestamp !== undefined
}

const volumeNameOf = (claimName: string, { view }: StoryWorld): string =>
  `pvc-${view.claims.get(keyOf(claimName))?.metadata.uid}`
