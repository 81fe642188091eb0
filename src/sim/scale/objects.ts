// Creates the objects of a cluster with local storage: CSIDriver, storage classes, nodes, and pods with ephemeral volumes.
import type { Kind } from '../../api/kind.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { Client } from '../../client/index.ts'
import type { FakePool } from '../../csi/fake/index.ts'
import { GI } from '../plan/catalog.ts'

/** The topology key of the driver. */
const TOPOLOGY_KEY = 'topology.stowage.example/node'

export const poolOf = (node: string, sizeGi: number): FakePool => ({
  name: `pool-${node}`,
  capacityBytes: sizeGi * GI,
  segments: { [TOPOLOGY_KEY]: node },
})

const create = (client: Client, kind: unknown, object: object) => client.create(kind as Kind, object as never)

export const createDriver = (client: Client, name: string) =>
  create(client, csiDriverKind, { metadata: { name }, spec: { storageCapacity: true } })

export const createClass = (client: Client, name: string, provisioner: string) =>
  create(client, storageClassKind, {
    metadata: { name },
    provisioner,
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'WaitForFirstConsumer',
  })

/** Creates a node on which the driver runs. */
export async function createNode(client: Client, name: string, driver: string): Promise<void> {
  await create(client, nodeKind, {
    metadata: { name, labels: { [TOPOLOGY_KEY]: name } },
    status: { allocatable: { cpu: '64', memory: '256Gi', pods: '1000' } },
  })
  await create(client, csiNodeKind, {
    metadata: { name },
    spec: { drivers: [{ name: driver, nodeID: name, topologyKeys: [TOPOLOGY_KEY] }] },
  })
}

/** Creates a pod with one ephemeral volume. */
export const createPod = (
  client: Client,
  name: string,
  volume: { readonly sizeGi: number; readonly className: string },
) =>
  create(client, podKind, {
    metadata: { namespace: 'default', name },
    spec: {
      containers: [{ name: 'main', image: 'scratch' }],
      volumes: [{ name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: claimSpec(volume) } } }],
    },
  })

const claimSpec = ({ sizeGi, className }: { readonly sizeGi: number; readonly className: string }) => ({
  accessModes: ['ReadWriteOnce'],
  storageClassName: className,
  resources: { requests: { storage: `${sizeGi}Gi` } },
})
