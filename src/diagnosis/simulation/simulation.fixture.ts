// Builds snapshots with nodes that have a pool of local storage each, and the pods and claims to place on them.
import type { Claim, StoredPod } from '../cluster.ts'
import type { Snapshot, SnapshotObjects } from '../snapshot.ts'
import type { Scenario } from './scenario.ts'
import { simulate } from './simulate.ts'

export const DRIVER = 'pools.example.com'
export const HOST = 'kubernetes.io/hostname'

const metadata = (name: string, fields: object = {}) => ({ name, uid: `uid-${name}`, resourceVersion: '1', ...fields })

interface TestNode {
  readonly name: string
  /** The free bytes of its pool. */
  readonly free: string
  readonly cpu?: string
}

/** Returns a cluster with the class `local`, which creates volumes in the pool of the selected node. */
export function aSnapshot(nodes: readonly TestNode[], objects: Partial<Record<keyof SnapshotObjects, object[]>> = {}) {
  return {
    nowMs: Date.UTC(2026, 0, 1),
    missingRules: [],
    notServed: new Set(),
    pods: [],
    nodes: nodes.map(({ name, cpu = '4' }) => ({
      metadata: metadata(name, { labels: { [HOST]: name } }),
      status: { allocatable: { cpu, memory: '8Gi', pods: '10' } },
    })),
    csiNodes: nodes.map(({ name }) => ({
      metadata: metadata(name),
      spec: { drivers: [{ name: DRIVER, nodeID: name, topologyKeys: [HOST] }] },
    })),
    classes: [aClass('local')],
    drivers: [{ metadata: metadata(DRIVER), spec: { storageCapacity: true } }],
    capacities: nodes.map(({ name, free }) => ({
      metadata: metadata(`report-${name}`, { namespace: 'kube-system' }),
      storageClassName: 'local',
      nodeTopology: { matchLabels: { [HOST]: name } },
      capacity: free,
    })),
    claims: [],
    volumes: [],
    attributesClasses: [],
    attachments: [],
    quotas: [],
    limitRanges: [],
    priorityClasses: [],
    events: [],
    operations: [],
    ...objects,
  } as unknown as Snapshot
}

export const aClass = (name: string, fields: object = {}) => ({
  metadata: metadata(name),
  provisioner: DRIVER,
  volumeBindingMode: 'WaitForFirstConsumer',
  ...fields,
})

export const aClaim = (name: string, storage: string, spec: object = {}, extra: object = {}) =>
  ({
    metadata: metadata(name, { namespace: 'shop' }),
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'local', resources: { requests: { storage } }, ...spec },
    status: { phase: 'Pending' },
    ...extra,
  }) as unknown as Claim

export const aPod = (name: string, claims: readonly string[] = [], spec: object = {}, meta: object = {}) =>
  ({
    metadata: metadata(name, { namespace: 'shop', ...meta }),
    spec: {
      containers: [{ name: 'app', image: 'app' }],
      volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
      ...spec,
    },
    status: { phase: 'Pending' },
  }) as unknown as StoredPod

export const cpu = (amount: string) => ({
  containers: [{ name: 'app', image: 'app', resources: { requests: { cpu: amount } } }],
})

export const runScenario = (scenario: Pick<Scenario, 'snapshot'> & Partial<Scenario>) =>
  simulate({ claims: [], pods: [], unplacedPods: [], ...scenario }, { random: () => 0, pause: async () => {} })
