// Builders for the tests of build-volume.ts and check-volume.ts: a claim, its class, and the volume that is built for them.
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { Claim } from '../../volumes/matching.ts'
import { buildVolume } from './build-volume.ts'
import type { NewVolume } from './provisioner.ts'

export const aClaim = (spec: object = {}): Claim => ({
  metadata: { namespace: 'shop', name: 'data', uid: 'u1', resourceVersion: '53' },
  spec: {
    storageClassName: 'fast',
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '4Gi' } },
    ...spec,
  },
})
const CLASS: StorageClass = { metadata: { name: 'fast' }, provisioner: 'gluster.org/gluster-volume' }
export const NEW_VOLUME: NewVolume = { spec: { capacity: { storage: '4Gi' }, hostPath: { path: '/x' } } }
const PROVISIONER_IDENTITY = { provisionerName: 'gluster.org/gluster-volume', finalizer: 'example.com/held' }
export const build = (newVolume: NewVolume = NEW_VOLUME, claim = aClaim(), storageClass = CLASS) =>
  buildVolume({ claim, storageClass, volumeName: 'pvc-u1', selectedNode: undefined }, newVolume, PROVISIONER_IDENTITY)
