// The users of the provisioning crash scenario: they create claims of several classes, and delete most of them. Each
// step states when it is due and when it is done, so that a request lost by a crash is repeated.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { Client } from '../../client/index.ts'
import { isBound } from '../checkers/context.ts'
import type { View } from '../engine/view.ts'
import { MEMORY_PLUGIN } from '../plan/catalog.ts'
import { DRIVER, NAMESPACE } from './crash-point.ts'

export interface Step {
  readonly name: string
  isDue(): boolean
  act(client: Client): Promise<unknown>
  isDone(): boolean
}

export interface StepDeps {
  readonly view: View
  /** Whether CreateVolume was ever called with this name. */
  isRequested(volumeName: string): boolean
}

/** The driver volume behind the volume that an administrator created. */
export const PREMADE = 'vol-premade'

/** Returns the steps of several users, who act at the same time. */
export const planSteps = (deps: StepDeps): Step[][] => [
  [createClaim('short', 'fast', deps), deleteClaim('short', deps, () => isClaimBound('short', deps))],
  [createClaim('static', 'static', deps), deleteClaim('static', deps, () => isClaimBound('static', deps))],
  [createClaim('kept', 'careful', deps), deleteClaim('kept', deps, () => isClaimBound('kept', deps))],
  [createClaim('hasty', 'fast', deps), deleteClaim('hasty', deps, () => deps.isRequested(volumeNameOf('hasty', deps)))],
  [
    createClaim('robbed', 'fast', deps),
    deleteVolume('robbed', deps),
    deleteClaim('robbed', deps, () => isVolumeDeleting('robbed', deps)),
  ],
  [createClaim('local', 'memory', deps), deleteClaim('local', deps, () => isClaimBound('local', deps))],
  [createClaim('stays', 'fast', deps)],
]

export async function createInitialObjects(client: Client): Promise<void> {
  const createClass = (name: string, provisioner: string, reclaimPolicy: string) =>
    client.create(storageClassKind, {
      metadata: { name },
      provisioner,
      reclaimPolicy,
      volumeBindingMode: 'Immediate',
    } as never)
  await createClass('fast', DRIVER, 'Delete')
  await createClass('careful', DRIVER, 'Retain')
  await createClass('memory', MEMORY_PLUGIN, 'Delete')
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

const createClaim = (name: string, storageClassName: string, { view }: StepDeps): Step => ({
  name: `create ${name}`,
  isDue: () => true,
  act: (client) =>
    client.create(persistentVolumeClaimKind, {
      metadata: { namespace: NAMESPACE, name },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName },
    }),
  isDone: () => view.claims.has(keyOf(name)),
})

const deleteClaim = (name: string, { view }: StepDeps, isDue: () => boolean): Step => ({
  name: `delete ${name}`,
  isDue,
  act: (client) => client.delete(persistentVolumeClaimKind, { namespace: NAMESPACE, name }),
  isDone: () => view.claims.get(keyOf(name))?.metadata.deletionTimestamp !== undefined || !view.claims.has(keyOf(name)),
})

const deleteVolume = (claimName: string, deps: StepDeps): Step => ({
  name: `delete the volume of ${claimName}`,
  isDue: () => isClaimBound(claimName, deps),
  act: (client) =>
    client.delete(persistentVolumeKind, { name: deps.view.claims.get(keyOf(claimName))?.spec?.volumeName ?? '' }),
  isDone: () => isVolumeDeleting(claimName, deps),
})

function isClaimBound(name: string, { view }: StepDeps): boolean {
  const claim = view.claims.get(keyOf(name))
  return claim !== undefined && isBound(claim)
}

function isVolumeDeleting(claimName: string, { view }: StepDeps): boolean {
  const name = view.claims.get(keyOf(claimName))?.spec?.volumeName
  return name !== undefined && view.volumes.get(name)?.metadata.deletionTimestamp !== undefined
}

const volumeNameOf = (claimName: string, { view }: StepDeps): string =>
  `pvc-${view.claims.get(keyOf(claimName))?.metadata.uid}`
