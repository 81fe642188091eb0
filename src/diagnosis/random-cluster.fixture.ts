// Generates random clusters for the agreement test: nodes, drivers, classes, capacity reports, volumes, claims and pods with
// various causes for which the scheduler rejects a pod or a node. The pod to schedule is `shop/new`.
import type { Random } from '../base/clock.ts'
import type { Snapshot } from './snapshot.ts'

const NOW_MS = Date.UTC(2026, 0, 1)
const DRIVERS = ['a.example.com', 'b.example.com']
const ZONES = ['east', 'west']
const ZONE = 'topology.example.com/zone'
const HOST = 'kubernetes.io/hostname'

export function generateCluster(random: Random): Snapshot {
  const chance = (probability: number) => random() < probability
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!
  const upTo = (max: number) => Math.floor(random() * (max + 1))
  const count = <T>(length: number, create: (index: number) => T): T[] =>
    Array.from({ length }, (_, index) => create(index))
  const metadata = (name: string, fields: object = {}) => ({
    name,
    uid: `uid-${name}`,
    resourceVersion: '1',
    ...fields,
  })
  const gi = (amount: number) => `${amount}Gi`

  const nodes = count(upTo(5), (index) => ({
    metadata: metadata(`node-${index}`, { labels: { [HOST]: `node-${index}`, [ZONE]: pick(ZONES) } }),
    spec: {
      ...(chance(0.1) ? { unschedulable: true } : {}),
      ...(chance(0.15)
        ? { taints: [{ key: 'team', value: 'x', effect: pick(['NoSchedule', 'PreferNoSchedule']) }] }
        : {}),
    },
    status: { allocatable: { cpu: pick(['1', '4']), memory: '8Gi', pods: pick(['2', '110']) } },
  }))
  const nodeName = () => (nodes.length > 0 && chance(0.9) ? pick(nodes).metadata.name : 'node-gone')
  const drivers = DRIVERS.filter(() => chance(0.9)).map((name) => ({
    metadata: metadata(name),
    spec: { storageCapacity: chance(0.8), ...(chance(0.2) ? { preventPodSchedulingIfMissing: true } : {}) },
  }))
  const csiNodes = nodes.map(({ metadata: { name } }) => ({
    metadata: metadata(name),
    spec: {
      drivers: DRIVERS.filter(() => chance(0.8)).map((driver) => ({
        name: driver,
        nodeID: name,
        topologyKeys: [HOST],
        ...(chance(0.3) ? { allocatable: { count: 1 + upTo(2) } } : {}),
      })),
    },
  }))
  const classes = ['delayed-a', 'delayed-b', 'immediate', 'static'].map((name) => ({
    metadata: metadata(name),
    provisioner: name === 'static' ? 'kubernetes.io/no-provisioner' : name === 'delayed-b' ? DRIVERS[1]! : DRIVERS[0]!,
    volumeBindingMode: name === 'immediate' ? 'Immediate' : 'WaitForFirstConsumer',
    ...(chance(0.15) ? { allowedTopologies: [{ matchLabelExpressions: [{ key: ZONE, values: [pick(ZONES)] }] }] } : {}),
  }))
  const capacities = count(upTo(8), (index) => ({
    metadata: metadata(`report-${index}`, { namespace: 'csi', creationTimestamp: '2026-01-01T00:00:00Z' }),
    storageClassName: pick(classes).metadata.name,
    nodeTopology: { matchLabels: chance(0.5) ? { [ZONE]: pick(ZONES) } : { [HOST]: nodeName() } },
    ...(chance(0.9) ? { capacity: gi(upTo(12)) } : {}),
    ...(chance(0.3) ? { maximumVolumeSize: gi(upTo(10)) } : {}),
  }))
  const affinityTo = (key: string, value: string) => ({
    nodeAffinity: {
      required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values: [value] }] }] },
    },
  })
  const freeVolumes = count(upTo(3), (index) => ({
    metadata: metadata(`free-${index}`),
    spec: {
      capacity: { storage: gi(1 + upTo(9)) },
      accessModes: ['ReadWriteOnce'],
      storageClassName: pick(['static', 'static', 'delayed-a']),
      volumeMode: 'Filesystem',
      ...affinityTo(HOST, nodeName()),
    },
    status: { phase: 'Available' },
  }))

  const claims: object[] = []
  const boundVolumes: object[] = []
  const createClaim = (index: number): string => {
    const name = `claim-${index}`
    const storageClassName = chance(0.05) ? 'missing' : pick(classes).metadata.name
    const isBound = storageClassName !== 'missing' && chance(0.4)
    const volumeName = `pv-${index}`
    const bound = { 'pv.kubernetes.io/bind-completed': 'yes' }
    const selected = { 'volume.kubernetes.io/selected-node': nodeName() }
    claims.push({
      metadata: metadata(name, {
        namespace: 'shop',
        annotations: isBound ? bound : chance(0.15) ? selected : {},
        ...(chance(0.03) ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
      }),
      spec: {
        accessModes: [chance(0.15) ? 'ReadWriteOncePod' : 'ReadWriteOnce'],
        storageClassName,
        volumeMode: 'Filesystem',
        resources: { requests: { storage: gi(1 + upTo(9)) } },
        ...(isBound ? { volumeName } : {}),
      },
      status: { phase: isBound ? (chance(0.05) ? 'Lost' : 'Bound') : 'Pending' },
    })
    if (isBound && chance(0.92)) {
      boundVolumes.push({
        metadata: metadata(volumeName),
        spec: {
          capacity: { storage: '10Gi' },
          accessModes: ['ReadWriteOnce'],
          claimRef: { namespace: 'shop', name, uid: `uid-${name}` },
          csi: { driver: pick(DRIVERS), volumeHandle: volumeName },
          ...(chance(0.6) ? (chance(0.5) ? affinityTo(HOST, nodeName()) : affinityTo(ZONE, pick(ZONES))) : {}),
        },
        status: { phase: 'Bound' },
      })
    }
    return name
  }
  const names = count(upTo(5), createClaim)
  const volumesOf = (claimNames: readonly string[]) =>
    claimNames.map((claimName, index) => ({ name: `v${index}`, persistentVolumeClaim: { claimName } }))
  const container = {
    name: 'app',
    image: 'app',
    resources: { requests: chance(0.7) ? { cpu: pick(['100m', '2']) } : {} },
  }
  const priority = () => pick([-5, 0, 0, 10])
  const runningPods = count(upTo(4), (index) => ({
    metadata: metadata(`running-${index}`, {
      namespace: 'shop',
      ...(chance(0.1) ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    }),
    spec: {
      nodeName: nodeName(),
      containers: [container],
      volumes: volumesOf(names.filter(() => chance(0.15))),
      priority: priority(),
    },
    status: {
      phase: chance(0.9) ? 'Running' : 'Succeeded',
      ...(chance(0.5) ? { startTime: `2025-12-31T0${upTo(9)}:00:00Z` } : {}),
      ...(chance(0.3)
        ? { conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }] }
        : {}),
    },
  }))
  const usedClaims = [...names.filter(() => chance(0.5)), ...(chance(0.03) ? ['no-such-claim'] : [])]
  // Pods that wait for their victims to terminate. Other pods must not use the space that the victims leave.
  const nominatedPods = count(chance(0.2) ? 1 : 0, (index) => ({
    metadata: metadata(`nominated-${index}`, { namespace: 'shop' }),
    spec: { schedulerName: 'other', containers: [container], volumes: [], priority: priority() },
    status: { phase: 'Pending', nominatedNodeName: nodeName() },
  }))
  const newPod = {
    metadata: metadata('new', { namespace: 'shop', creationTimestamp: '2026-01-01T00:00:00Z' }),
    spec: {
      schedulerName: 'default-scheduler',
      containers: [container],
      volumes: volumesOf(usedClaims),
      priority: pick([-5, 0, 10, 20, 20]),
      ...(chance(0.1) ? { preemptionPolicy: 'Never' } : {}),
      ...(chance(0.15) ? { nodeSelector: { [ZONE]: pick(ZONES) } } : {}),
      ...(chance(0.2) ? { tolerations: [{ key: 'team', operator: 'Exists' }] } : {}),
    },
    status: { phase: 'Pending', ...(chance(0.2) ? { nominatedNodeName: nodeName() } : {}) },
  }
  const attachments = count(upTo(2), (index) => ({
    metadata: metadata(`attachment-${index}`),
    spec: { attacher: pick(DRIVERS), nodeName: nodeName(), source: { persistentVolumeName: `pv-${upTo(4)}` } },
    status: { attached: true },
  }))
  return {
    nowMs: NOW_MS,
    missingRules: [],
    notServed: new Set(),
    pods: [...runningPods, ...nominatedPods, newPod],
    nodes,
    claims,
    volumes: [...freeVolumes, ...boundVolumes],
    classes,
    attributesClasses: [],
    drivers,
    csiNodes,
    attachments,
    capacities,
    quotas: [],
    limitRanges: [],
    priorityClasses: [],
    events: [],
    operations: [],
  } as unknown as Snapshot
}
