// The users of the provisioning crash scenario: they create claims of every sort, wait for a state, and delete. Each step
// says when it is due and when it is done, so that a request that a crash swallowed is repeated.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { Client } from '../../client/index.ts'
import { isBound } from '../checkers/context.ts'
import type { View } from '../engine/view.ts'
import { PLUGIN } from './claim-controllers.ts'
import { DRIVER, NAMESPACE } from './crash-point.ts'

export interface Step {
  readonly name: string
  isDue(): boolean
  act(client: Client): Promise<unknown>
  isDone(): boolean
}

export interface StepWorld {
  readonly view: View
  /** Whether CreateVolume was ever called with this name. */
  isRequested(volumeName: string): boolean
}

/** The driver volume behind the volume that an administrator created. */
export const PREMADE = 'vol-premade'

/** Several users at once, each with its steps in order. */
export const stepsOf = (simulation: StepWorld): Step[][] => [
  [claimed('short', 'fast', simulation), deletedWhen('short', simulation, () => isBoundNow('short', simulation))],
  [claimed('static', 'static', simulation), deletedWhen('static', simulation, () => isBoundNow('static', simulation))],
  [claimed('kept', 'careful', simulation), deletedWhen('kept', simulation, () => isBoundNow('kept', simulation))],
  [
    claimed('hasty', 'fast', simulation),
    deletedWhen('hasty', simulation, () => simulation.isRequested(volumeNameOf('hasty', simulation))),
  ],
  [
    claimed('robbed', 'fast', simulation),
    volumeDeleted('robbed', simulation),
    deletedWhen('robbed', simulation, () => isVolumeDeleting('robbed', simulation)),
  ],
  [claimed('local', 'memory', simulation), deletedWhen('local', simulation, () => isBoundNow('local', simulation))],
  [claimed('stays', 'fast', simulation)],
]

export async function prepare(client: Client): Promise<void> {
  const storageClass = (name: string, provisioner: string, reclaimPolicy: string) =>
    client.create(storageClassKind, {
      metadata: { name },
      provisioner,
      reclaimPolicy,
      volumeBindingMode: 'Immediate',
    } as never)
  await storageClass('fast', DRIVER, 'Delete')
  await storageClass('careful', DRIVER, 'Retain')
  await storageClass('memory', PLUGIN, 'Delete')
  await client.create(persistentVolumeKind, {
    metadata: { name: 'premade' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: 'static',
      csi: { driver: DRIVER, volumeHandle: PREMADE },
    },
  })
}

const keyOf = (name: string) => `${NAMESPACE}/${name}`

const claimed = (name: string, storageClassName: string, { view }: StepWorld): Step => ({
  name: `create ${name}`,
  isDue: () => true,
  act: (client) =>
    client.create(persistentVolumeClaimKind, {
      metadata: { namespace: NAMESPACE, name },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName },
    }),
  isDone: () => view.claims.has(keyOf(name)),
})

const deletedWhen = (name: string, { view }: StepWorld, isDue: () => boolean): Step => ({
  name: `delete ${name}`,
  isDue,
  act: (client) => client.delete(persistentVolumeClaimKind, { namespace: NAMESPACE, name }),
  isDone: () => view.claims.get(keyOf(name))?.metadata.deletionTimestamp !== undefined || !view.claims.has(keyOf(name)),
})

const volumeDeleted = (claimName: string, simulation: StepWorld): Step => ({
  name: `delete the volume of ${claimName}`,
  isDue: () => isBoundNow(claimName, simulation),
  act: (client) =>
    client.delete(persistentVolumeKind, { name: simulation.view.claims.get(keyOf(claimName))?.spec?.volumeName ?? '' }),
  isDone: () => isVolumeDeleting(claimName, simulation),
})

function isBoundNow(name: string, { view }: StepWorld): boolean {
  const claim = view.claims.get(keyOf(name))
  return claim !== undefined && isBound(claim)
}

function isVolumeDeleting(claimName: string, { view }: StepWorld): boolean {
  const name = view.claims.get(keyOf(claimName))?.spec?.volumeName
  return name !== undefined && view.volumes.get(name)?.metadata.deletionTimestamp !== undefined
}

const volumeNameOf = (claimName: string, { view }: StepWorld): string =>
  `pvc-${view.claims.get(keyOf(claimName))?.metadata.uid}`
