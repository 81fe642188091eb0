// Writes a cluster with local storage into a data directory: nodes with the driver, its classes, and capacity objects.
import { join } from 'node:path'
import { encodeStored } from '../../src/apiserver/objects/stored-object.ts'
import { systemClock, systemRandom } from '../../src/base/clock.ts'
import { randomUuid } from '../../src/base/identifiers.ts'
import { DRIVER_NAME_LABEL, MANAGED_BY_LABEL, managedBy } from '../../src/controllers/capacity/managed-by.ts'
import { openLmdbStore } from '../../src/store/index.ts'

export interface LocalCluster {
  readonly nodes: number
  readonly classes: number
  readonly driver: string
  readonly poolBytes: number
}

export const NODE_TOPOLOGY_KEY = 'topology.bench.example/node'
export const CAPACITY_NAMESPACE = 'kube-system'
export const className = (nth: number): string => `local-${nth}`
const OBJECTS_PER_TRANSACTION = 1_000

export async function fillCluster(dataDir: string, cluster: LocalCluster): Promise<void> {
  const store = await openLmdbStore({ dir: join(dataDir, 'store'), clock: systemClock() })
  let batch: { put: string; value: Buffer }[] = []
  const write = async () => {
    const writes = batch
    batch = []
    if (writes.length > 0) await store.transact(() => writes)
  }
  for (const { key, object } of listObjects(cluster)) {
    batch.push({ put: key, value: encodeStored(object) })
    if (batch.length === OBJECTS_PER_TRANSACTION) await write()
  }
  await write()
  await store.close()
}

function* listObjects({ nodes, classes, driver, poolBytes }: LocalCluster) {
  yield { key: `storage.k8s.io/csidrivers/${driver}`, object: buildObject(driver, { spec: DRIVER_SPEC }) }
  for (let nth = 0; nth < classes; nth++) {
    const name = className(nth)
    const parts = {
      provisioner: driver,
      parameters: { pool: name },
      reclaimPolicy: 'Delete',
      volumeBindingMode: 'WaitForFirstConsumer',
    }
    yield { key: `storage.k8s.io/storageclasses/${name}`, object: buildObject(name, parts) }
  }
  const immediate = { provisioner: driver, reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' }
  yield { key: `storage.k8s.io/storageclasses/${IMMEDIATE_CLASS}`, object: buildObject(IMMEDIATE_CLASS, immediate) }
  for (let nth = 0; nth < nodes; nth++) {
    const name = `node-${String(nth).padStart(5, '0')}`
    const labels = { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', [NODE_TOPOLOGY_KEY]: name }
    const allocatable = { cpu: '64', memory: '256Gi', pods: '1000' }
    yield { key: `core/nodes/${name}`, object: buildObject(name, { status: { allocatable } }, { labels }) }
    const drivers = [{ name: driver, nodeID: name, topologyKeys: [NODE_TOPOLOGY_KEY] }]
    yield { key: `storage.k8s.io/csinodes/${name}`, object: buildObject(name, { spec: { drivers } }) }
    for (let classIndex = 0; classIndex < classes; classIndex++) {
      const report = `csisc-${name}-${classIndex}`
      const capacityLabels = { [DRIVER_NAME_LABEL]: driver, [MANAGED_BY_LABEL]: managedBy() }
      yield {
        key: `storage.k8s.io/csistoragecapacities/${CAPACITY_NAMESPACE}/${report}`,
        object: buildObject(
          report,
          {
            storageClassName: className(classIndex),
            nodeTopology: { matchLabels: { [NODE_TOPOLOGY_KEY]: name } },
            capacity: String(poolBytes),
          },
          { namespace: CAPACITY_NAMESPACE, labels: capacityLabels },
        ),
      }
    }
  }
}

/** A class with immediate binding and no topology. */
export const IMMEDIATE_CLASS = 'anywhere'

const DRIVER_SPEC = {
  attachRequired: false,
  podInfoOnMount: false,
  volumeLifecycleModes: ['Persistent'],
  storageCapacity: true,
  fsGroupPolicy: 'ReadWriteOnceWithFSType',
  requiresRepublish: false,
}

const buildObject = (name: string, parts: object, metadata: object = {}) => ({
  metadata: {
    name,
    uid: randomUuid(systemRandom()),
    creationTimestamp: '2026-01-31T12:00:00Z',
    ...metadata,
  },
  ...parts,
})
