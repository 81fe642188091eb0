// Generates targeted faults: a fault and the actions it affects, on the same object within seconds. Random actions and faults
// coincide too rarely. Each targeted fault uses its own claims and pods.
import type { CsiFailureCode } from '../../csi/index.ts'
import { ATTRIBUTES_CLASSES, CLASSES, NAMESPACES } from '../plan/catalog.ts'
import type { Action, Fault, Manifest, Ref, Setup, Step, UserAction } from '../plan/plan.ts'
import { agentOf, clientsOf, controlProcesses, nodesOf, workersOf } from '../plan/process-names.ts'
import type { Rng } from './rng.ts'

const SECOND_MS = 1_000
/** The time after which the objects that a targeted fault needs exist. */
const READY_MS = 40 * SECOND_MS
/** The time after which a targeted fault has ended, including calls to a hanging driver. */
const TARGETED_MS = 5 * 60 * SECOND_MS

interface TargetedFault {
  add(target: Target): void
  /** Whether the fault applies to this setup. Default: always. */
  fits?(setup: Setup): boolean
  /** Whether the fault makes controllers crash or lose their lease, after which a new leader lists everything. */
  readonly isDisruptive?: boolean
}

interface Target {
  readonly rng: Rng
  readonly setup: Setup
  /** Each targeted fault has its own claim. */
  readonly claim: Ref
  readonly pod: Ref
  addStep(ms: number, action: Action): void
}

export interface TargetedTimes {
  readonly untilMs: number
  /** From then on no fault disrupts the controllers; 0 if there is no such period. */
  readonly steadyStartMs: number
}

export const generateTargetedFaults = (rng: Rng, setup: Setup, count: number, times: TargetedTimes): Step[] =>
  generate({ rng, setup, count, times, kinds: TARGETED_FAULTS, prefix: 'target' })

/** Generates `count` claims whose node is deleted while the result of CreateVolume is unknown. */
export const generateUnansweredNodeDeletions = (rng: Rng, setup: Setup, count: number, times: TargetedTimes): Step[] =>
  generate({ rng, setup, count, times, kinds: [unansweredNodeDeletion], prefix: 'lost' })

interface TargetedPlan {
  readonly rng: Rng
  readonly setup: Setup
  readonly count: number
  readonly times: TargetedTimes
  readonly kinds: readonly TargetedFault[]
  /** The prefix of the names of claims and pods. */
  readonly prefix: string
}

function generate({ rng, setup, count, times, kinds: allKinds, prefix }: TargetedPlan): Step[] {
  const steps: Step[] = []
  const kinds = allKinds.filter(({ fits }) => fits?.(setup) ?? true)
  let remainingFaults: TargetedFault[] = []
  for (let nth = 0; nth < count; nth++) {
    if (remainingFaults.length === 0) remainingFaults = shuffle(rng, kinds)
    const targetedFault = remainingFaults.pop()!
    const beginMs = chooseStartMs(targetedFault, rng, times)
    const [namespace] = NAMESPACES
    targetedFault.add({
      rng,
      setup,
      claim: { namespace, name: `${prefix}-${nth}` },
      pod: { namespace, name: `${prefix}-${nth}` },
      addStep: (ms, action) => void steps.push({ atMs: beginMs + Math.floor(ms), action }),
    })
  }
  return steps
}

/**
 * Returns the time at which the fault starts. In a plan with a steady period, disruptive faults come before it and most others in
 * it.
 */
function chooseStartMs({ isDisruptive }: TargetedFault, rng: Rng, { untilMs, steadyStartMs }: TargetedTimes): number {
  const lastMs = Math.max(0, untilMs - TARGETED_MS)
  const boundaryMs = Math.min(lastMs, Math.max(0, steadyStartMs - (isDisruptive ? TARGETED_MS : 0)))
  const fraction = rng.fraction()
  if (boundaryMs === 0) return Math.floor(fraction * lastMs)
  if (isDisruptive) return Math.floor(fraction * boundaryMs)
  return Math.floor(rng.chance(0.85) ? boundaryMs + fraction * (lastMs - boundaryMs) : fraction * lastMs)
}

function shuffle<T>(rng: Rng, items: readonly T[]): T[] {
  const copy = [...items]
  for (let index = copy.length - 1; index > 0; index--) {
    const swapIndex = rng.below(index + 1)
    ;[copy[index], copy[swapIndex]] = [copy[swapIndex]!, copy[index]!]
  }
  return copy
}

const shortDelayMs = (rng: Rng): number => 200 + rng.fraction() * 8 * SECOND_MS

/** A claim is deleted while the result of CreateVolume is unknown. */
const unansweredDeletion: TargetedFault = {
  add({ rng, claim, addStep }) {
    addStep(READY_MS, rng.chance(0.5) ? loseReplies('net.sim', 15) : hangDriver('net.sim', 'CreateVolume', 15))
    addStep(READY_MS + 100, create('claim', claimOf(claim, 'net-now')))
    addStep(READY_MS + 100 + shortDelayMs(rng), remove('claim', claim))
  },
}

/**
 * The provisioner crashes and the selected node is deleted while the result of CreateVolume is unknown: the next process
 * does not know the topology of the first request, and the volume exists where no pod can use it.
 */
const unansweredNodeDeletion: TargetedFault = {
  isDisruptive: true,
  add({ rng, setup, claim, pod, addStep }) {
    const node = rng.pick(nodesOf(setup))
    addStep(READY_MS, loseReplies('local.sim', 8))
    addStep(READY_MS + 100, create('claim', claimOf(claim, 'local-wait')))
    addStep(READY_MS + 200, create('pod', { ...podOf(pod, claim), spec: { ...podSpec(claim), nodeName: node } }))
    const crashMs = READY_MS + 200 + rng.between(500, 4 * SECOND_MS)
    for (const name of workersOf(setup, 'provisioner', 'local.sim')) addStep(crashMs, crashProcess(name, 5))
    // Long enough for the next leader to find the node missing and for the scheduler to select another.
    addStep(crashMs, crashProcess(agentOf(node), rng.between(150, 220)))
    addStep(crashMs + 200, remove('node', { name: node }))
    addStep(crashMs + 400, { ...remove('pod', pod), graceSeconds: 0 })
    addStep(crashMs + 500 + shortDelayMs(rng), create('pod', podOf({ ...pod, name: `${pod.name}-1` }, claim)))
  },
}

/** An attributes class is reverted while the result of ControllerModifyVolume is unknown. */
const unansweredRevert: TargetedFault = {
  add({ rng, claim, addStep }) {
    addStep(0, create('claim', claimOf(claim, 'net-now', { volumeAttributesClassName: 'silver' })))
    addStep(
      READY_MS,
      rng.chance(0.5) ? loseReplies('net.sim', 12) : hangDriver('net.sim', 'ControllerModifyVolume', 20),
    )
    addStep(READY_MS + 100, editClaim(claim, { volumeAttributesClassName: 'gold' }, 'modify'))
    addStep(READY_MS + 100 + shortDelayMs(rng), { do: 'revert', ref: claim })
  },
}

/** Amounts are changed again while the result of ControllerModifyVolume is unknown. */
const unansweredAmountsRevert: TargetedFault = {
  fits: ({ commits }) => commits === 'atomic',
  add({ rng, claim, addStep }) {
    addStep(0, create('claim', claimOf(claim, 'local-now')))
    addStep(
      READY_MS,
      rng.chance(0.5) ? loseReplies('local.sim', 12) : hangDriver('local.sim', 'ControllerModifyVolume', 20),
    )
    addStep(READY_MS + 100, editClaim(claim, { resources: { requests: { iops: '300' } } }, 'amounts'))
    addStep(
      READY_MS + 100 + shortDelayMs(rng),
      editClaim(claim, { resources: { requests: { iops: '700' } } }, 'amounts'),
    )
  },
}

/** A claim is expanded again before the node has completed the first expansion. */
const doubleExpansion: TargetedFault = {
  add({ rng, setup, claim, pod, addStep }) {
    addStep(0, create('claim', claimOf(claim, 'net-now')))
    addStep(1, create('pod', podOf(pod, claim)))
    const code = rng.pick(['INTERNAL', 'OUT_OF_RANGE', 'INVALID_ARGUMENT', 'UNAVAILABLE'] as const)
    if (rng.chance(0.7)) addStep(READY_MS, failCalls('net.sim', 'NodeExpandVolume', rng.between(2, 6), code))
    else for (const node of nodesOf(setup)) addStep(READY_MS, crashProcess(agentOf(node), 20))
    addStep(READY_MS + 100, grow(claim, 3))
    addStep(READY_MS + 100 + shortDelayMs(rng), grow(claim, 5))
  },
}

/** A volume is retained or released while its deletion is in progress; its controller may not receive the change. */
const lateRetention: TargetedFault = {
  add({ rng, setup, claim, addStep }) {
    const workers = workersOf(setup, 'provisioner', 'net.sim')
    addStep(0, create('claim', claimOf(claim, 'net-now')))
    addStep(READY_MS, failCalls('net.sim', 'DeleteVolume', rng.between(1, 5), 'UNAVAILABLE'))
    addStep(READY_MS + 100, remove('claim', claim))
    const visibility = rng.below(4)
    for (const process of workers) {
      if (visibility < 2) addStep(READY_MS + 400, silenceWatches(process, 40))
      if (visibility === 2) addStep(READY_MS + 500, { do: 'bad network', process, ms: 8 * SECOND_MS, lose: 0.6 })
    }
    addStep(
      READY_MS + 500 + shortDelayMs(rng) / 4,
      rng.chance(0.7) ? editVolume(claim, RETAIN_PATCH, 'policy') : releaseVolume(claim),
    )
  },
}

/** A node's object is deleted while a volume is mounted there, and the pod is deleted too. */
const nodeDeletion: TargetedFault = {
  add({ rng, setup, claim, pod, addStep }) {
    const node = rng.pick(nodesOf(setup))
    addStep(0, create('claim', claimOf(claim, 'net-now')))
    addStep(20 * SECOND_MS, create('pod', { ...podOf(pod, claim), spec: { ...podSpec(claim), nodeName: node } }))
    addStep(READY_MS, crashProcess(agentOf(node), 30 + rng.below(60)))
    addStep(READY_MS + 200, remove('node', { name: node }))
    addStep(READY_MS + 300 + rng.fraction() * 3 * SECOND_MS, { ...remove('pod', pod), graceSeconds: 0 })
  },
}

/** A volume is not detached when its pod is deleted; then another pod needs it, or its claim is deleted. */
const detachFailure: TargetedFault = {
  add({ rng, claim, pod, addStep }) {
    addStep(0, create('claim', claimOf(claim, 'net-now')))
    addStep(1, create('pod', podOf(pod, claim)))
    const code = rng.pick(['INTERNAL', 'FAILED_PRECONDITION', 'NOT_FOUND', 'UNAVAILABLE'] as const)
    addStep(READY_MS, failCalls('net.sim', 'ControllerUnpublishVolume', rng.between(1, 4), code))
    addStep(READY_MS + 100, { ...remove('pod', pod), graceSeconds: rng.pick([0, 1]) })
    const nextPod = { ...pod, name: `${pod.name}-1` }
    const afterMs = READY_MS + 100 + 2 * shortDelayMs(rng)
    addStep(afterMs, rng.chance(0.5) ? create('pod', podOf(nextPod, claim)) : remove('claim', claim))
  },
}

/** The leader freezes while it works, or the clock of another replica is ahead. */
const twoLeaders: TargetedFault = {
  isDisruptive: true,
  fits: ({ controlReplicas }) => controlReplicas > 1,
  add({ rng, setup, claim, pod, addStep }) {
    const pair = rng.pick([workersOf(setup, 'provisioner', 'net.sim'), workersOf(setup, 'resizer', 'net.sim')])
    const [firstProcess = 'control-1', secondProcess = firstProcess] = shuffle(rng, pair)
    for (let nth = 0; nth < 4; nth++) {
      const ownClaim = { ...claim, name: `${claim.name}-${nth}` }
      addStep(READY_MS + rng.fraction() * 2 * SECOND_MS, create('claim', claimOf(ownClaim, 'net-now')))
      addStep(READY_MS + 90 * SECOND_MS + rng.fraction() * 5 * SECOND_MS, grow(ownClaim, 3))
    }
    const choice = rng.below(3)
    const ms = rng.between(50, 100) * SECOND_MS
    // Whichever of them leads, the clock of the other is ahead at some time.
    if (choice > 0) {
      addStep(READY_MS - SECOND_MS, { do: 'jump clock', process: secondProcess, byMs: 90 * SECOND_MS })
      addStep(READY_MS + 120 * SECOND_MS, { do: 'jump clock', process: firstProcess, byMs: 180 * SECOND_MS })
    }
    if (choice < 2) addStep(READY_MS + rng.fraction() * 2 * SECOND_MS, { do: 'freeze', process: firstProcess, ms })
    addStep(READY_MS, create('pod', podOf(pod, { ...claim, name: `${claim.name}-0` })))
  },
}

/** Several claims compete for one static volume: one names it, the others match it. Some have a pod. */
const contestedVolume: TargetedFault = {
  isDisruptive: true,
  add({ rng, setup, claim, pod, addStep }) {
    const name = `contested-${claim.name}`
    const className = rng.pick(['static', 'net-wait', 'net-wait'])
    const commonSpec = { accessModes: ['ReadWriteOnce'], storageClassName: className }
    const spec = { ...commonSpec, capacity: { storage: '1Gi' }, persistentVolumeReclaimPolicy: 'Retain' }
    const csi = { driver: 'net.sim', volumeHandle: `imported-${name}` }
    const object = { metadata: { name }, spec: { ...spec, csi } }
    const beginMs = READY_MS + 5 * SECOND_MS
    const fault = rng.below(6)
    addStep(READY_MS + 100, { do: 'import', driver: 'net.sim', name: `imported-${name}`, object })
    for (let nth = 0; nth < 3; nth++) {
      const ownClaim = { ...claim, name: `${claim.name}-${nth}` }
      const volumeRef = nth === 0 ? { volumeName: name } : {}
      // With silent watches, the claim that names the volume is mostly created after the others.
      const atMs = beginMs + (fault > 1 ? (nth === 0 ? 15 : 3) * SECOND_MS * rng.fraction() : 60 * rng.fraction())
      addStep(atMs, create('claim', claimOf(ownClaim, className, volumeRef)))
      if (className === 'net-wait')
        addStep(atMs, create('pod', podOf({ ...pod, name: `${pod.name}-${nth}` }, ownClaim)))
    }
    // An administrator reserves the volume for the last claim before any of the claims exists.
    if (fault > 1 && rng.chance(0.7)) {
      const claimRef = { namespace: claim.namespace, name: `${claim.name}-2` }
      addStep(beginMs - 100, editVolume({ name }, { spec: { claimRef } }, 'reserve'))
    }
    for (const process of workersOf(setup, 'control')) {
      const atMs = beginMs + rng.fraction() * 100
      if (fault === 0) addStep(atMs, { do: 'bad network', process, ms: 5 * SECOND_MS, lose: 0.3 })
      if (fault === 1) addStep(atMs, { do: 'freeze', process, ms: rng.between(50, 90) * SECOND_MS })
      if (fault > 1) addStep(beginMs - 500, { ...silenceWatches(process, 30), plural: 'persistentvolumes' })
    }
    addStep(beginMs + 20 * SECOND_MS + shortDelayMs(rng), remove('claim', { ...claim, name: `${claim.name}-0` }))
  },
}

/** A class is created for a claim that waits for it, while there are few other actions. */
const lateClassCreation: TargetedFault = {
  add({ rng, claim, addStep }) {
    if (rng.chance(0.6)) {
      const name = rng.pick(['net-keep', 'local-now', 'basic'])
      addStep(READY_MS - SECOND_MS, remove('storage class', { name }))
      addStep(READY_MS, create('claim', claimOf(claim, name)))
      addStep(READY_MS + 60 * SECOND_MS, create('storage class', { metadata: { name }, ...CLASSES[name]! }))
      return
    }
    const name = 'late'
    addStep(0, create('claim', claimOf(claim, 'net-now')))
    addStep(READY_MS - SECOND_MS, remove('attributes class', { name }))
    addStep(READY_MS, editClaim(claim, { volumeAttributesClassName: name }, 'modify'))
    addStep(READY_MS + 60 * SECOND_MS, create('attributes class', { metadata: { name }, ...ATTRIBUTES_CLASSES[name]! }))
  },
}

/** Objects are deleted while watches are silent: only a relist shows the deletions. */
const silentDeletion: TargetedFault = {
  add({ rng, setup, claim, pod, addStep }) {
    const secondClaim = { ...claim, name: `${claim.name}-1` }
    addStep(0, create('claim', claimOf(claim, 'net-now')))
    addStep(1, create('claim', claimOf(secondClaim, rng.pick(['net-keep', 'local-now']))))
    addStep(2, create('pod', podOf(pod, claim)))
    const silencedProcesses = rng.pickWeighted([
      [3, controlProcesses(setup)],
      [1, [agentOf(rng.pick(nodesOf(setup)))]],
      [2, clientsOf(setup)],
    ])
    const seconds = rng.between(25, 70)
    for (const name of silencedProcesses) addStep(READY_MS, silenceWatches(name, seconds))
    const duringSilenceMs = () => READY_MS + SECOND_MS + rng.fraction() * (seconds - 5) * SECOND_MS
    addStep(duringSilenceMs(), { ...remove('pod', pod), ...(rng.chance(0.6) ? { graceSeconds: 0 } : {}) })
    addStep(duringSilenceMs(), remove('claim', secondClaim))
    const deletionMs = duringSilenceMs()
    if (rng.chance(0.7)) addStep(deletionMs, remove('claim', claim))
    if (rng.chance(0.3)) addStep(deletionMs + 10 * SECOND_MS, create('claim', claimOf(claim, 'local-now')))
  },
}

/** Controllers fail while they create, expand, modify and delete. */
const controllerFailure: TargetedFault = {
  isDisruptive: true,
  add({ rng, setup, claim, pod, addStep }) {
    const className = rng.pick(['net-now', 'net-now', 'local-now'])
    const driver = className === 'local-now' ? 'local.sim' : 'net.sim'
    const nth = (index: number) => ({ ...claim, name: `${claim.name}-${index}` })
    const [newClaim, expandedClaim, modifiedClaim, deletedClaim] = [nth(0), nth(1), nth(2), nth(3)]
    for (const ownClaim of [expandedClaim, modifiedClaim, deletedClaim])
      addStep(0, create('claim', claimOf(ownClaim, className)))
    if (rng.chance(0.6)) addStep(SECOND_MS, create('pod', podOf(pod, expandedClaim)))
    const soonMs = () => READY_MS + rng.fraction() * 2 * SECOND_MS
    addStep(soonMs(), create('claim', claimOf(newClaim, className)))
    addStep(soonMs(), grow(expandedClaim, 4))
    const attributes = driver === 'net.sim' ? 'gold' : 'quick'
    addStep(soonMs(), editClaim(modifiedClaim, { volumeAttributesClassName: attributes }, 'modify'))
    addStep(soonMs(), remove('claim', deletedClaim))

    const ms = rng.between(4, 25) * SECOND_MS
    const fault = rng.pickWeighted<(process: string) => Fault>([
      [6, (process) => ({ do: 'bad network', process, ms, lose: 0.5, only: 'replies' })],
      [3, (process) => ({ do: 'bad network', process, ms, lose: 0.4 })],
      [2, (process) => crashProcess(process, rng.between(1, 10))],
    ])
    const roles = ['provisioner', 'resizer', 'control']
    const workers = new Set(roles.flatMap((role) => workersOf(setup, role, driver)))
    const atMs = READY_MS - 100 + rng.pick([0, 200, 2_000]) * rng.fraction()
    if (rng.chance(0.1)) addStep(atMs, { do: 'refuse writes', ms: rng.between(1, 6) * SECOND_MS })
    else for (const name of workers) addStep(atMs, fault(name))
  },
}

/** `controllerFailure` is included twice, because it varies most. */
const TARGETED_FAULTS: readonly TargetedFault[] = [
  unansweredDeletion,
  unansweredRevert,
  unansweredAmountsRevert,
  doubleExpansion,
  lateRetention,
  nodeDeletion,
  detachFailure,
  twoLeaders,
  contestedVolume,
  lateClassCreation,
  silentDeletion,
  controllerFailure,
  controllerFailure,
]

type Kind = 'claim' | 'pod' | 'attributes class' | 'storage class' | 'node'

const create = (kind: Kind, object: Manifest): UserAction => ({
  do: 'create',
  kind,
  object,
})

const remove = (kind: Kind, ref: Ref) => ({ do: 'delete', kind, ref }) as const

const claimOf = (metadata: Ref, storageClassName: string, otherSpec: object = {}): Manifest => ({
  metadata,
  spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } }, ...otherSpec },
})

const podSpec = (claim: Ref) => ({
  containers: [{ name: 'main', image: 'scratch', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
  volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claim.name } }],
})

const podOf = (metadata: Ref, claim: Ref) => ({ metadata, spec: podSpec(claim) })

const editClaim = (ref: Ref, spec: object, purpose: string): UserAction => ({
  do: 'edit',
  kind: 'claim',
  ref,
  patch: { spec },
  purpose,
})

const grow = (ref: Ref, sizeGi: number): UserAction =>
  editClaim(ref, { resources: { requests: { storage: `${sizeGi}Gi` } } }, 'grow')

const RETAIN_PATCH = { spec: { persistentVolumeReclaimPolicy: 'Retain' } }

const editVolume = (ref: Ref, patch: Manifest, purpose: string): UserAction => ({
  do: 'edit',
  kind: 'volume',
  ref,
  patch,
  purpose,
})

const releaseVolume = (ref: Ref): UserAction => editVolume(ref, { spec: { claimRef: null } }, 'release')

type TargetDriver = 'net.sim' | 'local.sim'

const loseReplies = (driver: TargetDriver, seconds: number): Fault => ({
  do: 'lose replies',
  driver,
  ms: seconds * SECOND_MS,
})

const hangDriver = (driver: TargetDriver, method: string, seconds: number): Fault => ({
  do: 'driver hangs',
  driver,
  method,
  ms: seconds * SECOND_MS,
})

const failCalls = (driver: TargetDriver, method: string, times: number, code: CsiFailureCode): Fault => ({
  do: 'driver fails',
  driver,
  method,
  code,
  times,
})

const crashProcess = (process: string, seconds: number): Fault => ({
  do: 'crash',
  process,
  downMs: seconds * SECOND_MS,
})

const silenceWatches = (process: string, seconds: number) => ({
  do: 'cut history' as const,
  process,
  ms: seconds * SECOND_MS,
})
