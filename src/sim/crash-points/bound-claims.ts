// Creates claims bound to volumes that are mounted on a node, for the crash scenarios of expansion and modification.
// volume-change-processes.ts runs the processes that change the volumes.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { Client } from '../../client/index.ts'
import { type FakeSettings, fakeSettings } from '../../csi/fake/index.ts'
import type { SimDriver } from '../environment/driver.ts'
import { addPremadeVolume } from '../environment/premade-volume.ts'
import { GI } from '../plan/catalog.ts'
import { DRIVER, NAMESPACE } from './crash-point.ts'

export const gi = (size: number): number => size * GI
export const handleOf = (claim: string): string => `vol-${claim}`
export const targetOf = (handle: string): string => `/pods/${handle}`
const NODE_ID = 'id-n1'
const MAXIMUM_GI = 12

export const expandableSettings = (): FakeSettings =>
  fakeSettings({
    name: DRIVER,
    pools: [{ name: 'pool', capacityBytes: gi(1_000) }],
    nodes: [{ id: NODE_ID }],
    maximumBytes: gi(MAXIMUM_GI),
  })

/**
 * Creates claims of 1Gi, each bound to a volume that is mounted on the node, in a namespace whose quota of requests.storage is
 * `storageQuota`.
 */
export async function createBoundClaims(
  client: Client,
  driver: SimDriver,
  names: readonly string[],
  storageQuota: string,
) {
  await client.create(storageClassKind, {
    metadata: { name: 'expandable' },
    provisioner: DRIVER,
    allowVolumeExpansion: true,
  } as never)
  await client.create(resourceQuotaKind, {
    metadata: { namespace: NAMESPACE, name: 'team' },
    spec: { hard: { 'requests.storage': storageQuota } },
  } as never)
  for (const name of names) {
    addMountedVolume(driver, handleOf(name))
    const size = { storage: '1Gi' }
    const spec = { accessModes: ['ReadWriteOnce'], storageClassName: 'expandable', volumeName: `pv-${name}` }
    const claim = await client.create(persistentVolumeClaimKind, {
      metadata: { namespace: NAMESPACE, name },
      spec: { ...spec, resources: { requests: size } },
    } as never)
    await client.create(persistentVolumeKind, {
      metadata: { name: `pv-${name}` },
      spec: {
        capacity: size,
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: 'expandable',
        claimRef: { kind: 'PersistentVolumeClaim', namespace: NAMESPACE, name, uid: claim.metadata.uid },
        csi: { driver: DRIVER, volumeHandle: handleOf(name) },
      },
    } as never)
    const ref = { namespace: NAMESPACE, name }
    const boundPhase = { type: 'merge', body: { status: { phase: 'Bound' } } } as const
    await client.patch(persistentVolumeKind, { name: `pv-${name}` }, boundPhase, { subresource: 'status' })
    const status = { phase: 'Bound', capacity: size, accessModes: ['ReadWriteOnce'] }
    await client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body: { status } }, { subresource: 'status' })
  }
}

function addMountedVolume(driver: SimDriver, handle: string): void {
  addPremadeVolume(driver, handle, GI)
  const capability = 'mount SINGLE_NODE_WRITER'
  const volume = driver.state().volumes[handle]!
  const use = { capability, isReadonly: false }
  driver.state().volumes[handle] = {
    ...volume,
    createRequest: { ...volume.createRequest, capabilities: [capability] },
    onNodes: { [NODE_ID]: { staged: {}, published: { [targetOf(handle)]: use }, fileSystemBytes: GI } },
  }
}
