// The workloads of the simulator: what users do, for how long, and how many faults occur. `mixed` combines features; the
// others focus on one, with shorter plans and, except for `lost-nodes`, higher fault rates. generate-plan.ts turns a workload
// into a plan.
import type { AtRestStep, Setup, UserAction } from '../plan/plan.ts'
import {
  changeAttributesClass,
  changeClass,
  changeConfigMap,
  changeNode,
  createManualCapacity,
} from './admin-actions.ts'
import {
  createClaim,
  createClaimsTogether,
  createContendedClaim,
  createDelayedClaim,
  createLosableClaim,
  deleteClaim,
  dryRunClaim,
  growClaim,
  lowerClaim,
  modifyClaim,
  revertClaim,
  touchClaim,
  writeInvalidClaim,
} from './claim-actions.ts'
import type { Draft } from './draft.ts'
import { changeGrowthPolicy, createGrowingClaim } from './growth-actions.ts'
import { createPlacedPod, createPod, createPriorityPod, deletePod, touchPod } from './pod-actions.ts'
import { changeLimitRange, createQuota, deleteQuota, editQuota } from './quota-actions.ts'
import {
  breakTemplate,
  changeRetention,
  changeTemplate,
  createSet,
  deletePodOfSet,
  deleteSet,
  scaleSet,
} from './set-actions.ts'
import { changePolicy, createVolume, deleteVolume, importVolume, releaseVolume, touchVolume } from './volume-actions.ts'

export const WORKLOAD_NAMES = [
  'mixed',
  'provisioning',
  'expansion',
  'modification',
  'attaching',
  'scheduling',
  'quota',
  'cache',
  'contention',
  'placement',
  'stateful-sets',
  'priority',
  'auto-grow',
  'lost-nodes',
] as const
export type WorkloadName = (typeof WORKLOAD_NAMES)[number]

type Range = readonly [least: number, most: number]
type Actions = readonly (readonly [weight: number, generate: (draft: Draft) => UserAction])[]

export interface Workload {
  /** How long users act and faults occur. Then all faults end. */
  readonly minutes: number
  readonly operations: Range
  readonly faults: Range
  readonly targetedFaults: Range
  /** The factor for all fault rates. */
  readonly severity: number
  /** Whether namespaces and nodes are deleted, gates changed and driver state lost in some plans. */
  readonly hasRareActions: boolean
  readonly actions: Actions
  /** Actions of the first moments, while nodes, drivers and controllers are still starting. */
  readonly firstActions?: { readonly count: Range; readonly withinMs: number; readonly actions: Actions }
  /** How many nodes are deleted and registered again; by default at most one, if there are rare actions. */
  readonly nodeDeletions?: Range
  /** The number of claims whose node is deleted while the result of CreateVolume is unknown. */
  readonly unansweredNodeDeletions?: number
  /** How many nodes are lost. Clocks do not jump and no other power is cut, because the time after a loss matters. */
  readonly nodeLosses?: Range
  /** The part of the setup that the workload needs; the seed decides the rest. */
  readonly setup?: (seed: number) => Partial<Setup>
  readonly atRest?: readonly AtRestStep[]
}

const FOCUSED_WORKLOAD = {
  minutes: 12,
  operations: [50, 80],
  faults: [6, 12],
  targetedFaults: [0, 2],
  severity: 3,
  hasRareActions: false,
  atRest: ['restart'],
} as const satisfies Partial<Workload>

export const WORKLOADS: Readonly<Record<WorkloadName, Workload>> = {
  mixed: {
    minutes: 50,
    operations: [220, 280],
    faults: [24, 40],
    targetedFaults: [6, 10],
    severity: 1,
    hasRareActions: true,
    actions: [
      [18, createClaim],
      [8, deleteClaim],
      [9, growClaim],
      [2, lowerClaim],
      [8, modifyClaim],
      [2, revertClaim],
      [3, touchClaim],
      [3, writeInvalidClaim],
      [14, createPod],
      [9, deletePod],
      [1, touchPod],
      [3, importVolume],
      [2, createVolume],
      [2, deleteVolume],
      [3, changePolicy],
      [4, releaseVolume],
      [1, touchVolume],
      [2, changeClass],
      [2, changeAttributesClass],
      [3, createQuota],
      [3, editQuota],
      [2, deleteQuota],
      [2, changeLimitRange],
      [3, changeNode],
      [3, changeConfigMap],
    ],
  },
  provisioning: {
    ...FOCUSED_WORKLOAD,
    actions: [
      [10, createClaim],
      [6, deleteClaim],
      [2, touchClaim],
      [4, createPod],
      [3, deletePod],
      [3, importVolume],
      [2, createVolume],
      [2, deleteVolume],
      [3, releaseVolume],
      [2, changePolicy],
      [3, changeClass],
    ],
  },
  expansion: {
    ...FOCUSED_WORKLOAD,
    actions: [
      [5, createClaim],
      [1, deleteClaim],
      [12, growClaim],
      [4, lowerClaim],
      [4, revertClaim],
      [1, touchClaim],
      [5, createPod],
      [2, deletePod],
      [1, createQuota],
      [2, editQuota],
    ],
  },
  modification: {
    ...FOCUSED_WORKLOAD,
    actions: [
      [5, createClaim],
      [1, deleteClaim],
      [12, modifyClaim],
      [5, revertClaim],
      [2, growClaim],
      [3, createPod],
      [2, deletePod],
      [3, changeAttributesClass],
      [1, createQuota],
      [1, editQuota],
    ],
  },
  attaching: {
    ...FOCUSED_WORKLOAD,
    setup: () => ({ nodes: 3 }),
    actions: [
      [5, createClaim],
      [1, deleteClaim],
      [12, createPod],
      [10, deletePod],
      [1, changeNode],
    ],
  },
  scheduling: {
    ...FOCUSED_WORKLOAD,
    setup: () => ({ nodes: 3 }),
    actions: [
      [4, createClaim],
      [1, deleteClaim],
      [12, createPod],
      [7, deletePod],
      [3, changeNode],
      [1, createManualCapacity],
    ],
    atRest: ['restart', 'unrelated changes'],
  },
  quota: {
    ...FOCUSED_WORKLOAD,
    operations: [120, 180],
    // Several API servers share the store, as they do on etcd, and decide on copies that lag behind.
    setup: (seed) => ({ apiServers: 1 + (seed % 3), commits: 'atomic' }),
    actions: [
      [10, createClaim],
      [2, createClaimsTogether],
      [2, dryRunClaim],
      [5, deleteClaim],
      [4, growClaim],
      [3, modifyClaim],
      [2, createPod],
      [2, deletePod],
      [5, createQuota],
      [5, editQuota],
      [2, deleteQuota],
      [1, changeLimitRange],
      [5, changeConfigMap],
    ],
    atRest: ['restart', 'use free quota'],
  },
  cache: {
    ...FOCUSED_WORKLOAD,
    minutes: 30,
    operations: [150, 250],
    setup: () => ({ cacheFollower: true }),
    actions: [
      [20, changeConfigMap],
      [3, createClaim],
      [3, deleteClaim],
    ],
    atRest: [],
  },
  contention: {
    ...FOCUSED_WORKLOAD,
    targetedFaults: [2, 4],
    setup: (seed) => ({
      controlReplicas: 1,
      driverControllers: 'sidecars',
      memoryPlugin: true,
      secondBinder: seed % 3 !== 0,
      secondProvisioner: seed % 2 === 0,
    }),
    actions: [
      [12, createContendedClaim],
      [6, deleteClaim],
      [6, createPod],
      [4, deletePod],
      [5, importVolume],
      [5, createVolume],
      [2, deleteVolume],
      [2, releaseVolume],
      [2, changePolicy],
    ],
  },
  placement: {
    ...FOCUSED_WORKLOAD,
    setup: () => ({ nodes: 3 }),
    firstActions: {
      count: [6, 14],
      withinMs: 3_000,
      actions: [
        [5, createDelayedClaim],
        [5, createPlacedPod],
      ],
    },
    nodeDeletions: [0, 2],
    unansweredNodeDeletions: 1,
    actions: [
      [8, createDelayedClaim],
      [2, deleteClaim],
      [10, createPlacedPod],
      [2, createPod],
      [6, deletePod],
      [3, changeClass],
      [1, changeNode],
    ],
  },
  'stateful-sets': {
    ...FOCUSED_WORKLOAD,
    setup: () => ({ nodes: 3, statefulSets: true }),
    actions: [
      [6, createSet],
      [8, scaleSet],
      [5, changeTemplate],
      [2, breakTemplate],
      [2, changeRetention],
      [3, deletePodOfSet],
      [3, deleteSet],
      [1, changeNode],
    ],
  },
  'lost-nodes': {
    ...FOCUSED_WORKLOAD,
    minutes: 20,
    faults: [2, 6],
    targetedFaults: [0, 1],
    severity: 1,
    setup: () => ({ nodes: 3, nodeStorage: true }),
    nodeLosses: [1, 4],
    actions: [
      [10, createLosableClaim],
      [3, deleteClaim],
      [14, createPod],
      [5, deletePod],
      [1, changeNode],
    ],
    atRest: ['restart', 'return lost nodes'],
  },
  priority: {
    ...FOCUSED_WORKLOAD,
    setup: () => ({ nodes: 2 }),
    actions: [
      [3, createClaim],
      [1, deleteClaim],
      [16, createPriorityPod],
      [5, deletePod],
      [2, changeNode],
    ],
  },
  'auto-grow': {
    ...FOCUSED_WORKLOAD,
    setup: () => ({ nodes: 2, autoGrow: true }),
    actions: [
      [10, createGrowingClaim],
      [2, deleteClaim],
      [5, changeGrowthPolicy],
      [3, growClaim],
      [1, lowerClaim],
      [14, createPod],
      [3, deletePod],
      [3, createQuota],
      [2, editQuota],
      [1, deleteQuota],
    ],
  },
}
