// Builds claims as a client sends them, builds claims and volumes as the API server stores them, and fills data directories with
// claims.
import { join } from 'node:path'
import { encodeStored } from '../../src/apiserver/objects/stored-object.ts'
import { systemClock, systemRandom } from '../../src/base/clock.ts'
import { randomUuid } from '../../src/base/identifiers.ts'
import { openLmdbStore } from '../../src/store/index.ts'

const CLAIMS_PER_TRANSACTION = 1_000

export const buildClaim = (name: string) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: {
    name,
    labels: { 'app.kubernetes.io/name': 'orders', 'app.kubernetes.io/part-of': 'shop', tier: 'database' },
    annotations: { 'example.com/owner': 'team-orders@example.com' },
  },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'fast', resources: { requests: { storage: '10Gi' } } },
})

/** Returns the claim of buildClaim as the API server stores it. */
export function storedClaim(name: string, namespace: string): Buffer {
  const { metadata, spec } = buildClaim(name)
  const serverFields = { uid: randomUuid(systemRandom()), creationTimestamp: '2026-01-31T12:00:00Z' }
  const object = {
    metadata: { ...metadata, namespace, ...serverFields },
    spec: { ...spec, volumeMode: 'Filesystem' },
    status: { phase: 'Pending' },
  }
  return encodeStored(object)
}

/** Returns the name and the stored value of a bound claim with managed fields. */
export function boundClaim({ number, namespace, change }: { number: number; namespace: string; change: number }) {
  const name = `data-orders-${String(number).padStart(6, '0')}`
  const { metadata, spec } = buildClaim(name)
  const provisioner = 'csi.example.com'
  const object = {
    metadata: {
      ...metadata,
      namespace,
      uid: `7c9e6679-7425-40de-944b-${String(number).padStart(12, '0')}`,
      creationTimestamp: '2026-01-31T12:00:00Z',
      annotations: {
        ...metadata.annotations,
        'example.com/change': String(change),
        'pv.kubernetes.io/bind-completed': 'yes',
        'pv.kubernetes.io/bound-by-controller': 'yes',
        'volume.kubernetes.io/selected-node': `node-${number % 100}`,
        'volume.kubernetes.io/storage-provisioner': provisioner,
      },
      finalizers: ['kubernetes.io/pvc-protection'],
      managedFields: MANAGED_FIELDS,
    },
    spec: {
      ...spec,
      volumeMode: 'Filesystem',
      volumeName: `pvc-7c9e6679-7425-40de-944b-${String(number).padStart(12, '0')}`,
    },
    status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '10Gi' } },
  }
  return { name, value: encodeStored(object) }
}

/** Returns the name and the stored value of the volume of the claim with that number. */
export function boundVolume(number: number, namespace: string) {
  const { name: claimName } = boundClaim({ number, namespace, change: 0 })
  const uid = `7c9e6679-7425-40de-944b-${String(number).padStart(12, '0')}`
  const name = `pvc-${uid}`
  const object = {
    metadata: {
      name,
      uid: `1b4e28ba-2fa1-41d2-883f-${String(number).padStart(12, '0')}`,
      creationTimestamp: '2026-01-31T12:00:00Z',
      annotations: { 'pv.kubernetes.io/provisioned-by': 'csi.example.com' },
      finalizers: ['kubernetes.io/pv-protection', 'external-provisioner.volume.kubernetes.io/finalizer'],
      managedFields: MANAGED_FIELDS,
    },
    spec: {
      capacity: { storage: '10Gi' },
      accessModes: ['ReadWriteOnce'],
      claimRef: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name: claimName, uid },
      persistentVolumeReclaimPolicy: 'Delete',
      storageClassName: 'fast',
      volumeMode: 'Filesystem',
      csi: {
        driver: 'csi.example.com',
        volumeHandle: `vol-${String(number).padStart(17, '0')}`,
        fsType: 'ext4',
        volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': '1769860800000-4711-csi.example.com' },
      },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: 'topology.csi.example.com/zone', operator: 'In', values: ['zone-a'] }] },
          ],
        },
      },
    },
    status: { phase: 'Bound', lastPhaseTransitionTime: '2026-01-31T12:00:01Z' },
  }
  return { name, value: encodeStored(object) }
}

const managedFields = (manager: string, fieldsV1: Record<string, object>, subresource?: string) => ({
  manager,
  operation: 'Update',
  apiVersion: 'v1',
  time: '2026-01-31T12:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1,
  ...(subresource ? { subresource } : {}),
})

const MANAGED_FIELDS = [
  managedFields('kubectl-create', {
    'f:metadata': {
      'f:annotations': { '.': {}, 'f:example.com/owner': {} },
      'f:labels': { '.': {}, 'f:app.kubernetes.io/name': {}, 'f:app.kubernetes.io/part-of': {}, 'f:tier': {} },
    },
    'f:spec': { 'f:accessModes': {}, 'f:resources': { 'f:requests': { 'f:storage': {} } }, 'f:storageClassName': {} },
  }),
  managedFields('stowage-controllers', {
    'f:metadata': {
      'f:annotations': {
        'f:pv.kubernetes.io/bind-completed': {},
        'f:pv.kubernetes.io/bound-by-controller': {},
        'f:volume.kubernetes.io/storage-provisioner': {},
      },
    },
    'f:spec': { 'f:volumeName': {} },
  }),
  managedFields(
    'stowage-controllers',
    { 'f:status': { 'f:accessModes': {}, 'f:capacity': {}, 'f:phase': {} } },
    'status',
  ),
]

/** Adds claims to the store of a data directory. `claims` is their number. */
export async function fillDirectory(dataDir: string, claims: number, namespace = 'default'): Promise<void> {
  const store = await openLmdbStore({ dir: join(dataDir, 'store'), clock: systemClock() })
  for (let firstNumber = 0; firstNumber < claims; firstNumber += CLAIMS_PER_TRANSACTION) {
    const count = Math.min(CLAIMS_PER_TRANSACTION, claims - firstNumber)
    const names = Array.from(
      { length: count },
      (_, offset) => `stored-${String(firstNumber + offset).padStart(6, '0')}`,
    )
    await store.transact(() =>
      names.map((name) => ({
        put: `core/persistentvolumeclaims/${namespace}/${name}`,
        value: storedClaim(name, namespace),
      })),
    )
  }
  await store.close()
}
