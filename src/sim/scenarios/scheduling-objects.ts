// The objects of a cluster with local storage, as an administrator and the people who use it write them.
import type { Kind } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { Client } from '../../client/index.ts'
import type { FakePool } from '../../csi/fake/index.ts'

export const NAMESPACE = 'default'
/** Says on which node storage is; the driver names it on every node. */
export const PLACE = 'topology.stowage.example/node'
const GI = 1024 ** 3

export const poolOf = (node: string, sizeGi: number): FakePool => ({
  name: `pool-${node}`,
  capacityBytes: sizeGi * GI,
  segments: { [PLACE]: node },
})

const create = (client: Client, kind: unknown, object: object) => client.create(kind as Kind, object as never)

export const createDriver = (client: Client, name: string) =>
  create(client, csiDriverKind, { metadata: { name }, spec: { storageCapacity: true } })

export const createClass = (client: Client, name: string, provisioner: string, parts: object = {}) =>
  create(client, storageClassKind, {
    metadata: { name },
    provisioner,
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'WaitForFirstConsumer',
    ...parts,
  })

/** A node on which the driver runs. */
export async function createNode(client: Client, name: string, driver: string): Promise<void> {
  await create(client, nodeKind, {
    metadata: { name, labels: { [PLACE]: name } },
    status: { allocatable: { cpu: '64', memory: '256Gi', pods: '1000' } },
  })
  await registerDriver(client, name, driver)
}

export const registerDriver = (client: Client, name: string, driver: string) =>
  create(client, csiNodeKind, {
    metadata: { name },
    spec: { drivers: [{ name: driver, nodeID: name, topologyKeys: [PLACE] }] },
  })

export interface Wanted {
  readonly sizeGi: number
  readonly className: string
}

export const createClaim = (client: Client, name: string, wanted: Wanted) =>
  create(client, persistentVolumeClaimKind, { metadata: { namespace: NAMESPACE, name }, spec: claimSpec(wanted) })

export interface PodWish {
  readonly claims?: readonly string[]
  /** Volumes that come and go with the pod. */
  readonly ephemeral?: readonly Wanted[]
}

export const createPod = (client: Client, name: string, { claims = [], ephemeral = [] }: PodWish) =>
  create(client, podKind, {
    metadata: { namespace: NAMESPACE, name },
    spec: {
      containers: [{ name: 'main', image: 'scratch' }],
      volumes: [
        ...claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
        ...ephemeral.map((wanted, nth) => ({
          name: `scratch-${nth}`,
          ephemeral: { volumeClaimTemplate: { spec: claimSpec(wanted) } },
        })),
      ],
    },
  })

const claimSpec = ({ sizeGi, className }: Wanted) => ({
  accessModes: ['ReadWriteOnce'],
  storageClassName: className,
  resources: { requests: { storage: `${sizeGi}Gi` } },
})
