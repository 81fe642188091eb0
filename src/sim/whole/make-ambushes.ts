// Ambushes: a fault and the acts that it hurts, aimed at the same thing within seconds. In an hour of ordinary work such
// moments come too seldom to be met by chance. Each has names of its own, so that it meets nobody else's work.
import type { CsiFailureCode } from '../../csi/index.ts'
import type { Dice } from './dice.ts'
import type { Act, FaultAct, Named, ObjectText, PeopleAct, Setup, Step } from './plan.ts'
import { agentOf, clientsOf, controlProcesses, nodesOf, workersOf } from './processes.ts'
import { ATTRIBUTES_CLASSES, CLASSES, NAMESPACES } from './universe.ts'

const SECOND_MS = 1_000
/** What an ambush needs to be there is there by then. */
const READY_MS = 40 * SECOND_MS
/** It is over by then, also for whoever waits for a driver that hangs. */
export const AMBUSH_MS = 5 * 60 * SECOND_MS

interface Ambush {
  lay(scene: Scene): void
  /** Only where this holds. */
  fits?(setup: Setup): boolean
  /** Controllers crash or lose their lease over it, and whoever leads next looks at everything anew. */
  readonly isShaking?: boolean
}

interface Scene {
  readonly dice: Dice
  readonly setup: Setup
  /** Different for every ambush. */
  readonly claim: Named
  readonly pod: Named
  at(ms: number, act: Act): void
}

export interface AmbushTimes {
  readonly untilMs: number
  /** From here on nothing shakes the controllers; 0: all day something may. */
  readonly steadyFromMs: number
}

/** A few of them, each another one as long as there are others, one after the other or beside each other. */
export function makeAmbushes(dice: Dice, setup: Setup, count: number, times: AmbushTimes): Step[] {
  const steps: Step[] = []
  const kinds = AMBUSHES.filter(({ fits }) => fits?.(setup) ?? true)
  let left: Ambush[] = []
  for (let nth = 0; nth < count; nth++) {
    if (left.length === 0) left = shuffled(dice, kinds)
    const ambush = left.pop()!
    const beginMs = beginOf(ambush, dice, times)
    const [namespace] = NAMESPACES
    ambush.lay({
      dice,
      setup,
      claim: { namespace, name: `trap-${nth}` },
      pod: { namespace, name: `prey-${nth}` },
      at: (ms, act) => void steps.push({ atMs: beginMs + Math.floor(ms), act }),
    })
  }
  return steps
}

/** Where part of the day is steady, what shakes the controllers comes before, and most of the rest in it. */
function beginOf({ isShaking }: Ambush, dice: Dice, { untilMs, steadyFromMs }: AmbushTimes): number {
  const lastMs = Math.max(0, untilMs - AMBUSH_MS)
  const turnMs = Math.min(lastMs, Math.max(0, steadyFromMs - (isShaking ? AMBUSH_MS : 0)))
  const chosen = dice.fraction()
  if (turnMs === 0) return Math.floor(chosen * lastMs)
  if (isShaking) return Math.floor(chosen * turnMs)
  return Math.floor(dice.chance(0.85) ? turnMs + chosen * (lastMs - turnMs) : chosen * lastMs)
}

function shuffled<T>(dice: Dice, all: readonly T[]): T[] {
  const mixed = [...all]
  for (let at = mixed.length - 1; at > 0; at--) {
    const other = dice.roll(at + 1)
    ;[mixed[at], mixed[other]] = [mixed[other]!, mixed[at]!]
  }
  return mixed
}

const soon = (dice: Dice): number => 200 + dice.fraction() * 8 * SECOND_MS

/** The claim goes while nobody knows whether its volume was made. */
const goneUnanswered: Ambush = {
  lay({ dice, claim, at }) {
    at(READY_MS, dice.chance(0.5) ? losing('net.sim', 15) : hanging('net.sim', 'CreateVolume', 15))
    at(READY_MS + 100, create('claim', claimOf(claim, 'net-now')))
    at(READY_MS + 100 + soon(dice), remove('claim', claim))
  },
}

/** What was asked for last is taken back while nobody knows whether it was done. */
const takenBack: Ambush = {
  lay({ dice, claim, at }) {
    at(0, create('claim', claimOf(claim, 'net-now', { volumeAttributesClassName: 'silver' })))
    at(READY_MS, dice.chance(0.5) ? losing('net.sim', 12) : hanging('net.sim', 'ControllerModifyVolume', 20))
    at(READY_MS + 100, editClaim(claim, { volumeAttributesClassName: 'gold' }, 'modify'))
    at(READY_MS + 100 + soon(dice), { do: 'go back', of: claim })
  },
}

/** The same by amounts, where the server takes them. */
const amountsTakenBack: Ambush = {
  fits: ({ commits }) => commits === 'atomic',
  lay({ dice, claim, at }) {
    at(0, create('claim', claimOf(claim, 'local-now')))
    at(READY_MS, dice.chance(0.5) ? losing('local.sim', 12) : hanging('local.sim', 'ControllerModifyVolume', 20))
    at(READY_MS + 100, editClaim(claim, { resources: { requests: { iops: '300' } } }, 'amounts'))
    at(READY_MS + 100 + soon(dice), editClaim(claim, { resources: { requests: { iops: '700' } } }, 'amounts'))
  },
}

/** Grown again while the node still owes the first growth. */
const grownTwice: Ambush = {
  lay({ dice, setup, claim, pod, at }) {
    at(0, create('claim', claimOf(claim, 'net-now')))
    at(1, create('pod', podOf(pod, claim)))
    const code = dice.pick(['INTERNAL', 'OUT_OF_RANGE', 'INVALID_ARGUMENT', 'UNAVAILABLE'] as const)
    if (dice.chance(0.7)) at(READY_MS, failing('net.sim', 'NodeExpandVolume', dice.between(2, 6), code))
    else for (const node of nodesOf(setup)) at(READY_MS, crashing(agentOf(node), 20))
    at(READY_MS + 100, grow(claim, 3))
    at(READY_MS + 100 + soon(dice), grow(claim, 5))
  },
}

/** Kept, or given to the next, while its deletion is under way; whoever deletes it may not hear of that. */
const keptAfterAll: Ambush = {
  lay({ dice, setup, claim, at }) {
    const workers = workersOf(setup, 'provisioner', 'net.sim')
    at(0, create('claim', claimOf(claim, 'net-now')))
    at(READY_MS, failing('net.sim', 'DeleteVolume', dice.between(1, 5), 'UNAVAILABLE'))
    at(READY_MS + 100, remove('claim', claim))
    const unheard = dice.roll(4)
    for (const process of workers) {
      if (unheard < 2) at(READY_MS + 400, silencing(process, 40))
      if (unheard === 2) at(READY_MS + 500, { do: 'bad network', process, ms: 8 * SECOND_MS, lose: 0.6 })
    }
    at(READY_MS + 500 + soon(dice) / 4, dice.chance(0.7) ? editVolume(claim, RETAINED, 'policy') : givenBack(claim))
  },
}

/** The node's object goes while one of its volumes is mounted, and its pod goes too. */
const nodeGone: Ambush = {
  lay({ dice, setup, claim, pod, at }) {
    const node = dice.pick(nodesOf(setup))
    at(0, create('claim', claimOf(claim, 'net-now')))
    at(20 * SECOND_MS, create('pod', { ...podOf(pod, claim), spec: { ...podSpec(claim), nodeName: node } }))
    at(READY_MS, crashing(agentOf(node), 30 + dice.roll(60)))
    at(READY_MS + 200, remove('node', { name: node }))
    at(READY_MS + 300 + dice.fraction() * 3 * SECOND_MS, { ...remove('pod', pod), graceSeconds: 0 })
  },
}

/** What a pod leaves behind is not let go of, and the next one wants it, or nobody does any more. */
const movedBadly: Ambush = {
  lay({ dice, claim, pod, at }) {
    at(0, create('claim', claimOf(claim, 'net-now')))
    at(1, create('pod', podOf(pod, claim)))
    const code = dice.pick(['INTERNAL', 'FAILED_PRECONDITION', 'NOT_FOUND', 'UNAVAILABLE'] as const)
    at(READY_MS, failing('net.sim', 'ControllerUnpublishVolume', dice.between(1, 4), code))
    at(READY_MS + 100, { ...remove('pod', pod), graceSeconds: dice.pick([0, 1]) })
    const next = { ...pod, name: `${pod.name}-1` }
    const afterMs = READY_MS + 100 + 2 * soon(dice)
    at(afterMs, dice.chance(0.5) ? create('pod', podOf(next, claim)) : remove('claim', claim))
  },
}

/** Whoever leads sleeps in the middle of its work, or another's clock runs ahead. */
const twoLeaders: Ambush = {
  isShaking: true,
  fits: ({ controlReplicas }) => controlReplicas > 1,
  lay({ dice, setup, claim, pod, at }) {
    const pair = dice.pick([workersOf(setup, 'provisioner', 'net.sim'), workersOf(setup, 'resizer', 'net.sim')])
    const [first = 'control-1', second = first] = shuffled(dice, pair)
    for (let nth = 0; nth < 4; nth++) {
      const one = { ...claim, name: `${claim.name}-${nth}` }
      at(READY_MS + dice.fraction() * 2 * SECOND_MS, create('claim', claimOf(one, 'net-now')))
      at(READY_MS + 90 * SECOND_MS + dice.fraction() * 5 * SECOND_MS, grow(one, 3))
    }
    const what = dice.roll(3)
    const ms = dice.between(50, 100) * SECOND_MS
    // Whichever of them leads, the other's clock is ahead at some time.
    if (what > 0) {
      at(READY_MS - SECOND_MS, { do: 'jump clock', process: second, byMs: 90 * SECOND_MS })
      at(READY_MS + 120 * SECOND_MS, { do: 'jump clock', process: first, byMs: 180 * SECOND_MS })
    }
    if (what < 2) at(READY_MS + dice.fraction() * 2 * SECOND_MS, { do: 'freeze', process: first, ms })
    at(READY_MS, create('pod', podOf(pod, { ...claim, name: `${claim.name}-0` })))
  },
}

/** Several want the one volume that was made by hand: one by its name, others because it fits, for a pod or without. */
const rivals: Ambush = {
  isShaking: true,
  lay({ dice, setup, claim, pod, at }) {
    const name = `prize-${claim.name}`
    const className = dice.pick(['shelf', 'net-wait', 'net-wait'])
    const shared = { accessModes: ['ReadWriteOnce'], storageClassName: className }
    const spec = { ...shared, capacity: { storage: '1Gi' }, persistentVolumeReclaimPolicy: 'Retain' }
    const csi = { driver: 'net.sim', volumeHandle: `hand-${name}` }
    const object = { metadata: { name }, spec: { ...spec, csi } }
    const beginMs = READY_MS + 5 * SECOND_MS
    const trouble = dice.roll(6)
    at(READY_MS + 100, { do: 'import', driver: 'net.sim', name: `hand-${name}`, object })
    for (let nth = 0; nth < 3; nth++) {
      const one = { ...claim, name: `${claim.name}-${nth}` }
      const byName = nth === 0 ? { volumeName: name } : {}
      // Who does not hear of volumes is asked for this one by its name after it was set aside for another.
      const atMs = beginMs + (trouble > 1 ? (nth === 0 ? 15 : 3) * SECOND_MS * dice.fraction() : 60 * dice.fraction())
      at(atMs, create('claim', claimOf(one, className, byName)))
      if (className === 'net-wait') at(atMs, create('pod', podOf({ ...pod, name: `${pod.name}-${nth}` }, one)))
    }
    // An administrator means it for the last one, before any of them is there.
    if (trouble > 1 && dice.chance(0.7)) {
      const claimRef = { namespace: claim.namespace, name: `${claim.name}-2` }
      at(beginMs - 100, editVolume({ name }, { spec: { claimRef } }, 'reserve'))
    }
    for (const process of workersOf(setup, 'control')) {
      const atMs = beginMs + dice.fraction() * 100
      if (trouble === 0) at(atMs, { do: 'bad network', process, ms: 5 * SECOND_MS, lose: 0.3 })
      if (trouble === 1) at(atMs, { do: 'freeze', process, ms: dice.between(50, 90) * SECOND_MS })
      if (trouble > 1) at(beginMs - 500, { ...silencing(process, 30), plural: 'persistentvolumes' })
    }
    at(beginMs + 20 * SECOND_MS + soon(dice), remove('claim', { ...claim, name: `${claim.name}-0` }))
  },
}

/** The class that it waits for comes while little else happens. */
const classComes: Ambush = {
  lay({ dice, claim, at }) {
    if (dice.chance(0.6)) {
      const name = dice.pick(['net-keep', 'local-now', 'basic'])
      at(READY_MS - SECOND_MS, remove('storage class', { name }))
      at(READY_MS, create('claim', claimOf(claim, name)))
      at(READY_MS + 60 * SECOND_MS, create('storage class', { metadata: { name }, ...CLASSES[name]! }))
      return
    }
    const name = 'late'
    at(0, create('claim', claimOf(claim, 'net-now')))
    at(READY_MS - SECOND_MS, remove('attributes class', { name }))
    at(READY_MS, editClaim(claim, { volumeAttributesClassName: name }, 'modify'))
    at(READY_MS + 60 * SECOND_MS, create('attributes class', { metadata: { name }, ...ATTRIBUTES_CLASSES[name]! }))
  },
}

/** What goes while somebody does not hear of anything, and is found to be gone when everything is listed again. */
const goneUnheard: Ambush = {
  lay({ dice, setup, claim, pod, at }) {
    const other = { ...claim, name: `${claim.name}-1` }
    at(0, create('claim', claimOf(claim, 'net-now')))
    at(1, create('claim', claimOf(other, dice.pick(['net-keep', 'local-now']))))
    at(2, create('pod', podOf(pod, claim)))
    const deaf = dice.weighted([
      [3, controlProcesses(setup)],
      [1, [agentOf(dice.pick(nodesOf(setup)))]],
      [2, clientsOf(setup)],
    ])
    const seconds = dice.between(25, 70)
    for (const process of deaf) at(READY_MS, silencing(process, seconds))
    const inGap = () => READY_MS + SECOND_MS + dice.fraction() * (seconds - 5) * SECOND_MS
    at(inGap(), { ...remove('pod', pod), ...(dice.chance(0.6) ? { graceSeconds: 0 } : {}) })
    at(inGap(), remove('claim', other))
    const goneMs = inGap()
    if (dice.chance(0.7)) at(goneMs, remove('claim', claim))
    if (dice.chance(0.3)) at(goneMs + 10 * SECOND_MS, create('claim', claimOf(claim, 'local-now')))
  },
}

/** Whoever is to do what people ask for fails in the middle of it. */
const badMoment: Ambush = {
  isShaking: true,
  lay({ dice, setup, claim, pod, at }) {
    const className = dice.pick(['net-now', 'net-now', 'local-now'])
    const driver = className === 'local-now' ? 'local.sim' : 'net.sim'
    const nth = (index: number) => ({ ...claim, name: `${claim.name}-${index}` })
    const [made, grown, modified, gone] = [nth(0), nth(1), nth(2), nth(3)]
    for (const one of [grown, modified, gone]) at(0, create('claim', claimOf(one, className)))
    if (dice.chance(0.6)) at(SECOND_MS, create('pod', podOf(pod, grown)))
    const inIt = () => READY_MS + dice.fraction() * 2 * SECOND_MS
    at(inIt(), create('claim', claimOf(made, className)))
    at(inIt(), grow(grown, 4))
    const attributes = driver === 'net.sim' ? 'gold' : 'quick'
    at(inIt(), editClaim(modified, { volumeAttributesClassName: attributes }, 'modify'))
    at(inIt(), remove('claim', gone))

    const ms = dice.between(4, 25) * SECOND_MS
    const trouble = dice.weighted<(process: string) => FaultAct>([
      [6, (process) => ({ do: 'bad network', process, ms, lose: 0.5, only: 'replies' })],
      [3, (process) => ({ do: 'bad network', process, ms, lose: 0.4 })],
      [2, (process) => crashing(process, dice.between(1, 10))],
    ])
    const roles = ['provisioner', 'resizer', 'control']
    const workers = new Set(roles.flatMap((role) => workersOf(setup, role, driver)))
    const atMs = READY_MS - 100 + dice.pick([0, 200, 2_000]) * dice.fraction()
    if (dice.chance(0.1)) at(atMs, { do: 'refuse writes', ms: dice.between(1, 6) * SECOND_MS })
    else for (const process of workers) at(atMs, trouble(process))
  },
}

/** The last one twice: it is the one that can be about anything. */
const AMBUSHES: readonly Ambush[] = [
  goneUnanswered,
  takenBack,
  amountsTakenBack,
  grownTwice,
  keptAfterAll,
  nodeGone,
  movedBadly,
  twoLeaders,
  rivals,
  classComes,
  goneUnheard,
  badMoment,
  badMoment,
]

type Kind = 'claim' | 'pod' | 'attributes class' | 'storage class' | 'node'

const create = (kind: Kind, object: ObjectText): PeopleAct => ({
  do: 'create',
  kind,
  object,
})

const remove = (kind: Kind, of: Named) => ({ do: 'delete', kind, of }) as const

const claimOf = (metadata: Named, storageClassName: string, more: object = {}): ObjectText => ({
  metadata,
  spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } }, ...more },
})

const podSpec = (claim: Named) => ({
  containers: [{ name: 'main', image: 'scratch', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
  volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claim.name } }],
})

const podOf = (metadata: Named, claim: Named) => ({ metadata, spec: podSpec(claim) })

const editClaim = (of: Named, spec: object, why: string): PeopleAct => ({
  do: 'edit',
  kind: 'claim',
  of,
  patch: { spec },
  why,
})

const grow = (of: Named, sizeGi: number): PeopleAct =>
  editClaim(of, { resources: { requests: { storage: `${sizeGi}Gi` } } }, 'grow')

const RETAINED = { spec: { persistentVolumeReclaimPolicy: 'Retain' } }

const editVolume = (of: Named, patch: ObjectText, why: string): PeopleAct => ({
  do: 'edit',
  kind: 'volume',
  of,
  patch,
  why,
})

const givenBack = (of: Named): PeopleAct => editVolume(of, { spec: { claimRef: null } }, 'give back')

type Aimed = 'net.sim' | 'local.sim'

const losing = (driver: Aimed, seconds: number): FaultAct => ({ do: 'lose replies', driver, ms: seconds * SECOND_MS })

const hanging = (driver: Aimed, method: string, seconds: number): FaultAct => ({
  do: 'driver hangs',
  driver,
  method,
  ms: seconds * SECOND_MS,
})

const failing = (driver: Aimed, method: string, times: number, code: CsiFailureCode): FaultAct => ({
  do: 'driver fails',
  driver,
  method,
  code,
  times,
})

const crashing = (process: string, seconds: number): FaultAct => ({ do: 'crash', process, downMs: seconds * SECOND_MS })

const silencing = (process: string, seconds: number) => ({
  do: 'cut history' as const,
  process,
  ms: seconds * SECOND_MS,
})
