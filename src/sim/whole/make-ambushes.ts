// Ambushes: a fault and the acts that it hurts, aimed at the same thing within seconds. In an hour of ordinary work such
// moments come too seldom to be met by chance. Each has names of its own, so that it meets nobody else's work.
import type { Dice } from './dice.ts'
import type { Act, Named, ObjectText, PeopleAct, Setup, Step } from './plan.ts'
import { agentOf, controlProcesses, nodesOf } from './processes.ts'
import { ATTRIBUTES_CLASSES, NAMESPACES } from './universe.ts'

const SECOND_MS = 1_000
/** What an ambush needs to be there is there by then. */
const READY_MS = 40 * SECOND_MS
/** It is over by then, also for whoever waits for a driver that hangs. */
export const AMBUSH_MS = 5 * 60 * SECOND_MS

type Ambush = (scene: Scene) => void

interface Scene {
  readonly dice: Dice
  readonly setup: Setup
  /** Different for every ambush. */
  readonly claim: Named
  readonly pod: Named
  at(ms: number, act: Act): void
}

/** A few of them, one after the other or beside each other. */
export function makeAmbushes(dice: Dice, setup: Setup, { count, untilMs }: { count: number; untilMs: number }): Step[] {
  const steps: Step[] = []
  for (let nth = 0; nth < count; nth++) {
    const beginMs = Math.floor(dice.fraction() * Math.max(0, untilMs - AMBUSH_MS))
    const [namespace] = NAMESPACES
    const kinds = setup.commits === 'atomic' ? [...AMBUSHES, ...WITH_AMOUNTS] : AMBUSHES
    dice.pick(kinds)({
      dice,
      setup,
      claim: { namespace, name: `trap-${nth}` },
      pod: { namespace, name: `prey-${nth}` },
      at: (ms, act) => void steps.push({ atMs: beginMs + Math.floor(ms), act }),
    })
  }
  return steps
}

const soon = (dice: Dice): number => 200 + dice.fraction() * 8 * SECOND_MS

/** The claim goes while nobody knows whether its volume was made. */
const goneUnanswered: Ambush = ({ dice, claim, at }) => {
  at(READY_MS, dice.chance(0.5) ? losing('net.sim', 15) : hanging('net.sim', 'CreateVolume', 15))
  at(READY_MS + 100, create('claim', claimOf(claim, 'net-now')))
  at(READY_MS + 100 + soon(dice), remove('claim', claim))
}

/** What was asked for last is taken back while nobody knows whether it was done. */
const takenBack: Ambush = ({ dice, claim, at }) => {
  at(0, create('claim', claimOf(claim, 'net-now', { volumeAttributesClassName: 'silver' })))
  at(READY_MS, dice.chance(0.5) ? losing('net.sim', 12) : hanging('net.sim', 'ControllerModifyVolume', 20))
  at(READY_MS + 100, editClaim(claim, { volumeAttributesClassName: 'gold' }, 'modify'))
  at(READY_MS + 100 + soon(dice), { do: 'go back', of: claim })
}

/** The same by amounts, where the server takes them. */
const amountsTakenBack: Ambush = ({ dice, claim, at }) => {
  at(0, create('claim', claimOf(claim, 'local-now')))
  at(READY_MS, dice.chance(0.5) ? losing('local.sim', 12) : hanging('local.sim', 'ControllerModifyVolume', 20))
  at(READY_MS + 100, editClaim(claim, { resources: { requests: { iops: '300' } } }, 'amounts'))
  at(READY_MS + 100 + soon(dice), editClaim(claim, { resources: { requests: { iops: '700' } } }, 'amounts'))
}

/** Grown again while the node still owes the first growth. */
const grownTwice: Ambush = ({ dice, setup, claim, pod, at }) => {
  at(0, create('claim', claimOf(claim, 'net-now')))
  at(1, create('pod', podOf(pod, claim)))
  const code = 'INTERNAL'
  if (dice.chance(0.6))
    at(READY_MS, { do: 'driver fails', driver: 'net.sim', method: 'NodeExpandVolume', code, times: 3 })
  else for (const node of nodesOf(setup)) at(READY_MS, { do: 'crash', process: agentOf(node), downMs: 20 * SECOND_MS })
  at(READY_MS + 100, grow(claim, 3))
  at(READY_MS + 100 + soon(dice), grow(claim, 5))
}

/** Kept, or given to the next, while its deletion is under way. */
const keptAfterAll: Ambush = ({ dice, claim, at }) => {
  at(0, create('claim', claimOf(claim, 'net-now')))
  const code = 'UNAVAILABLE'
  at(READY_MS, { do: 'driver fails', driver: 'net.sim', method: 'DeleteVolume', code, times: dice.between(1, 5) })
  at(READY_MS + 100, remove('claim', claim))
  if (dice.chance(0.5)) at(READY_MS + 500, { do: 'bad network', process: 'control-1', ms: 8 * SECOND_MS, lose: 0.6 })
  at(READY_MS + 100 + soon(dice), {
    do: 'edit',
    kind: 'volume',
    of: claim,
    patch: { spec: { persistentVolumeReclaimPolicy: 'Retain' } },
    why: 'policy',
  })
}

/** The node's object goes while one of its volumes is mounted, and its pod goes too. */
const nodeGone: Ambush = ({ dice, setup, claim, pod, at }) => {
  const node = dice.pick(nodesOf(setup))
  at(0, create('claim', claimOf(claim, 'net-now')))
  at(20 * SECOND_MS, create('pod', { ...podOf(pod, claim), spec: { ...podSpec(claim), nodeName: node } }))
  at(READY_MS, { do: 'crash', process: agentOf(node), downMs: 30 * SECOND_MS + dice.roll(60 * SECOND_MS) })
  at(READY_MS + 200, remove('node', { name: node }))
  at(READY_MS + 300 + dice.fraction() * 3 * SECOND_MS, { ...remove('pod', pod), graceSeconds: 0 })
}

/** Whoever leads sleeps in the middle of its work, and another's clock runs ahead. */
const twoLeaders: Ambush = ({ dice, setup, claim, pod, at }) => {
  const [first = 'control-1', second = first] = controlProcesses(setup)
  for (let nth = 0; nth < 4; nth++) {
    const one = { ...claim, name: `${claim.name}-${nth}` }
    at(READY_MS + dice.fraction() * 2 * SECOND_MS, create('claim', claimOf(one, 'net-now')))
    at(READY_MS + 90 * SECOND_MS + dice.fraction() * 5 * SECOND_MS, grow(one, 3))
  }
  at(READY_MS + dice.fraction() * 2 * SECOND_MS, {
    do: 'freeze',
    process: first,
    ms: dice.between(50, 100) * SECOND_MS,
  })
  if (dice.chance(0.5)) at(READY_MS - SECOND_MS, { do: 'jump clock', process: second, byMs: 90 * SECOND_MS })
  at(READY_MS, create('pod', podOf(pod, { ...claim, name: `${claim.name}-0` })))
}

/** Several want the one volume that was made by hand. */
const rivals: Ambush = ({ dice, claim, at }) => {
  const name = `prize-${claim.name}`
  const shared = { accessModes: ['ReadWriteOnce'], storageClassName: 'shelf' }
  const spec = { ...shared, capacity: { storage: '1Gi' }, persistentVolumeReclaimPolicy: 'Retain' }
  const csi = { driver: 'net.sim', volumeHandle: `hand-${name}` }
  at(READY_MS, { do: 'bad network', process: 'control-1', ms: 5 * SECOND_MS, lose: 0.3 })
  at(READY_MS + 100, {
    do: 'import',
    driver: 'net.sim',
    name: `hand-${name}`,
    object: { metadata: { name }, spec: { ...spec, csi } },
  })
  for (let nth = 0; nth < 3; nth++) {
    const one = { ...claim, name: `${claim.name}-${nth}` }
    at(
      READY_MS + 100 + dice.fraction() * 300,
      create('claim', claimOf(one, 'shelf', nth === 0 ? { volumeName: name } : {})),
    )
  }
  at(READY_MS + soon(dice), remove('claim', { ...claim, name: `${claim.name}-0` }))
}

/** The class that it waits for comes while little else happens. */
const classComes: Ambush = ({ claim, at }) => {
  const name = 'late'
  at(0, create('claim', claimOf(claim, 'net-now')))
  at(READY_MS - SECOND_MS, remove('attributes class', { name }))
  at(READY_MS, editClaim(claim, { volumeAttributesClassName: name }, 'modify'))
  at(READY_MS + 60 * SECOND_MS, create('attributes class', { metadata: { name }, ...ATTRIBUTES_CLASSES[name]! }))
}

const AMBUSHES: readonly Ambush[] = [
  goneUnanswered,
  takenBack,
  grownTwice,
  keptAfterAll,
  nodeGone,
  twoLeaders,
  rivals,
  classComes,
]
const WITH_AMOUNTS: readonly Ambush[] = [amountsTakenBack]

const create = (kind: 'claim' | 'pod' | 'attributes class', object: ObjectText): PeopleAct => ({
  do: 'create',
  kind,
  object,
})

const remove = (kind: 'claim' | 'pod' | 'node' | 'attributes class', of: Named) => ({ do: 'delete', kind, of }) as const

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

const losing = (driver: 'net.sim' | 'local.sim', seconds: number) =>
  ({ do: 'lose replies', driver, ms: seconds * SECOND_MS }) as const

const hanging = (driver: 'net.sim' | 'local.sim', method: string, seconds: number) =>
  ({ do: 'driver hangs', driver, method, ms: seconds * SECOND_MS }) as const
