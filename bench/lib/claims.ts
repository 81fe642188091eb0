// The claims all measurements use, as a client sends them and as the store keeps them, and directories full of them.
import { join } from 'node:path'
import { encodeStored } from '../../src/apiserver/stored-object.ts'
import { systemClock, systemRandom } from '../../src/base/clock.ts'
import { randomUuid } from '../../src/base/identifiers.ts'
import { openLmdbStore } from '../../src/store/index.ts'

const CLAIMS_PER_TRANSACTION = 1_000

export const claimNamed = (name: string) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: {
    name,
    labels: { 'app.kubernetes.io/name': 'orders', 'app.kubernetes.io/part-of': 'shop', tier: 'database' },
    annotations: { 'example.com/owner': 'team-orders@example.com' },
  },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'fast', resources: { requests: { storage: '10Gi' } } },
})

/** As the API server stores the claim above. */
export function storedClaim(name: string, namespace: string): Buffer {
  const { metadata, spec } = claimNamed(name)
  const created = { uid: randomUuid(systemRandom()), creationTimestamp: '2026-01-31T12:00:00Z' }
  const object = {
    metadata: { ...metadata, namespace, ...created },
    spec: { ...spec, volumeMode: 'Filesystem' },
    status: { phase: 'Pending' },
  }
  return encodeStored(object)
}

/** Makes a data directory that holds this many claims in the namespace `default`. */
export async function fillDirectory(dataDir: string, claims: number): Promise<void> {
  const store = await openLmdbStore({ dir: join(dataDir, 'store'), clock: systemClock() })
  for (let made = 0; made < claims; made += CLAIMS_PER_TRANSACTION) {
    const count = Math.min(CLAIMS_PER_TRANSACTION, claims - made)
    const names = Array.from({ length: count }, (_, at) => `stored-${String(made + at).padStart(6, '0')}`)
    await store.transact(() =>
      names.map((name) => ({
        put: `core/persistentvolumeclaims/default/${name}`,
        value: storedClaim(name, 'default'),
      })),
    )
  }
  await store.close()
}
