// Measures `stowage simulate` without a server: pods with a volume each on a generated snapshot of 5,000 nodes with local
// storage, ten classes and a capacity object for each node and class.
import type { Claim, StoredPod } from '../src/diagnosis/cluster.ts'
import { simulate } from '../src/diagnosis/simulation/simulate.ts'
import type { Snapshot } from '../src/diagnosis/snapshot.ts'
import type { Figure } from './lib/figure.ts'
import { NODE_TOPOLOGY_KEY } from './lib/local-cluster.ts'
import type { PartOptions } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

const NODES = 5_000
const CLASSES = 10
const PODS = 10_000
const MS_MAX = 30_000
const DRIVER = 'pools.csi.stowage.dev'
const NAMESPACE = 'bench'

export async function measureSimulation({ progress }: PartOptions): Promise<Figure[]> {
  progress(`simulating ${formatCount(PODS)} pods on ${formatCount(NODES)} nodes`)
  const numbers = Array.from({ length: PODS }, (_, number) => number)
  const scenario = {
    snapshot: generateSnapshot(),
    claims: numbers.map(claimOf),
    pods: numbers.map(podOf),
    unplacedPods: [],
  }
  const startMs = performance.now()
  const pause = () => new Promise<void>((resolve) => setImmediate(resolve))
  const { placed } = await simulate(scenario, { random: Math.random, pause })
  const ms = performance.now() - startMs
  if (placed.length !== PODS) throw new Error(`only ${placed.length} pods were placed`)
  const name = `simulation of ${formatCount(PODS)} pods on ${formatCount(NODES)} nodes`
  return [{ name, unit: 'ms', value: ms, target: { valueMax: MS_MAX } }]
}

const metadata = (name: string, fields: object = {}) => ({ name, uid: `uid-${name}`, resourceVersion: '1', ...fields })
const className = (nth: number): string => `local-${nth}`

function generateSnapshot(): Snapshot {
  const nodeNames = Array.from({ length: NODES }, (_, nth) => `node-${String(nth).padStart(5, '0')}`)
  const classNames = Array.from({ length: CLASSES }, (_, nth) => className(nth))
  return {
    nowMs: 0,
    missingRules: [],
    notServed: new Set(),
    pods: [],
    nodes: nodeNames.map((name) => ({
      metadata: metadata(name, { labels: { 'kubernetes.io/hostname': name, [NODE_TOPOLOGY_KEY]: name } }),
      status: { allocatable: { cpu: '64', memory: '256Gi', pods: '110' } },
    })),
    csiNodes: nodeNames.map((name) => ({
      metadata: metadata(name),
      spec: { drivers: [{ name: DRIVER, nodeID: name, topologyKeys: [NODE_TOPOLOGY_KEY] }] },
    })),
    classes: classNames.map((name) => ({
      metadata: metadata(name),
      provisioner: DRIVER,
      volumeBindingMode: 'WaitForFirstConsumer',
    })),
    drivers: [{ metadata: metadata(DRIVER), spec: { storageCapacity: true } }],
    capacities: nodeNames.flatMap((node) =>
      classNames.map((storageClassName) => ({
        metadata: metadata(`${node}-${storageClassName}`, { namespace: 'kube-system' }),
        storageClassName,
        nodeTopology: { matchLabels: { [NODE_TOPOLOGY_KEY]: node } },
        capacity: '1Ti',
      })),
    ),
    claims: [],
    volumes: [],
    attributesClasses: [],
    attachments: [],
    quotas: [],
    limitRanges: [],
    events: [],
  } as unknown as Snapshot
}

const claimOf = (number: number) =>
  ({
    metadata: metadata(`claim-${number}`, { namespace: NAMESPACE }),
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: className(number % CLASSES),
      resources: { requests: { storage: '1Gi' } },
    },
    status: { phase: 'Pending' },
  }) as unknown as Claim

const podOf = (number: number) =>
  ({
    metadata: metadata(`pod-${number}`, { namespace: NAMESPACE }),
    spec: {
      containers: [{ name: 'app', image: 'app', resources: { requests: { cpu: '100m', memory: '128Mi' } } }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `claim-${number}` } }],
    },
    status: { phase: 'Pending' },
  }) as unknown as StoredPod
