// Crash scenario: users change classes, amounts and sizes of claims, some of which the driver refuses, and revert some, while
// one process crashes at one point. The final state includes driver, volumes, claims and quotas.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { isAlreadyExists } from '../../api/status-error.ts'
import { ATTRIBUTES, UNDO } from '../checkers/attributes.ts'
import type { ObjectOf } from '../engine/view.ts'
import { expandableDriver, gi, handleOf, runExpandingNode } from './bound-claims.ts'
import {
  type Crash,
  type CrashRun,
  type CrashSystem,
  createCrashSystem,
  finish,
  LOOK_MS,
  type Mode,
  NAMESPACE,
} from './crash-point.ts'
import { objectTexts } from './expansion.ts'
import { createClass, createModifiableClaims, runChanger, WORKERS } from './modifiable-claims.ts'

const SEED = 6
const END_MS_MAX = 1_200_000
/** Longer than the backoff after refused attributes. */
const REST_MS = 400_000
const CHANGES = ['ControllerModifyVolume', 'ControllerExpandVolume']
const NAMES = ['plain', 'undone', 'refused', 'stubborn', 'patient', 'larger']
/** Only a server with transactions accepts amounts. */
const WITH_AMOUNTS = ['fast', 'both', 'all']

export interface ModificationCrashRun extends CrashRun {
  /** By claim name, each event once: `VolumeModify: …`. */
  readonly events: Readonly<Record<string, readonly string[]>>
}

export async function modificationCrash(mode: Mode, crash?: Crash): Promise<ModificationCrashRun> {
  const names = [...NAMES, ...(mode === 'transactions' ? WITH_AMOUNTS : [])]
  const crashSystem = await createCrashSystem({
    seed: SEED,
    mode,
    at: crash?.at,
    driverSettings: expandableDriver(),
    prepare: (client, driver) => createModifiableClaims(client, driver, names),
    addProcesses(host) {
      host.add('changer', runChanger)
      host.add('node', runExpandingNode)
    },
  })
  const { simulation, system, driver, effects, claim } = crashSystem
  limitConcurrency(crashSystem)
  const events = followEvents(crashSystem)
  const isCalled = (name: string) =>
    driver.record.calls.some(({ method, volume }) => method === 'ControllerModifyVolume' && volume === handleOf(name))
  // Every reply about `undone` is lost until its user reverts it; the first call about `plain` fails.
  let hasFailed = false
  driver.script.match = (method, [id = '']) => {
    if (method !== 'ControllerModifyVolume') return undefined
    if (id === handleOf('undone') && claim('undone')?.spec?.volumeAttributesClassName === 'gold')
      return { effect: { do: 'loseReply', as: 'unavailable' } }
    if (id !== handleOf('plain') || hasFailed) return undefined
    hasFailed = true
    return { effect: { do: 'fail', code: 'INTERNAL' } }
  }

  const all = stepsOf(claim, isCalled)
  const sequences = Object.fromEntries(names.map((name) => [name, all[name]!]))
  let isLateCreated = false
  for (const [name, steps] of Object.entries(sequences)) follow(name, steps)
  administer()

  /** One user: makes the next edit when it is due, and again until the claim has it in its spec. */
  function follow(name: string, steps: Step[]): void {
    if (steps[0] && isIn(claim(name)?.spec, steps[0].edit)) steps.shift()
    const [step] = steps
    if (!step) return
    const client = system.cluster.direct()
    if (client && step.isDue()) {
      const body = { spec: step.edit }
      const ref = { namespace: NAMESPACE, name }
      void client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body }).catch(() => {})
    }
    simulation.schedule(LOOK_MS, () => follow(name, steps))
  }

  /** Creates the class `late` once a claim waits for it. */
  function administer(): void {
    if (isLateCreated) return
    const client = system.cluster.direct()
    if (client && claim('patient')?.status?.modifyVolumeStatus?.status === 'Pending') {
      createClass(client, 'late').then(
        () => {
          isLateCreated = true
        },
        (error) => {
          isLateCreated ||= isAlreadyExists(error)
        },
      )
    }
    simulation.schedule(LOOK_MS, administer)
  }

  const end = () => stateOf(crashSystem)
  await finish(crashSystem, {
    expected: crash?.expected,
    end,
    isDone: () => isLateCreated && Object.values(sequences).every((steps) => steps.length === 0),
    remaining: () =>
      Object.entries(sequences).flatMap(([name, steps]) => steps.map(({ edit }) => `${name} ${JSON.stringify(edit)}`)),
    endMsMax: END_MS_MAX,
    restMs: REST_MS,
  })
  return {
    effects: effects.all.map(({ by, what }) => `${by}: ${what}`),
    end: end(),
    steps: simulation.steps,
    events: Object.fromEntries(names.map((name) => [name, [...(events.get(name) ?? [])]])),
  }
}

/** Reports more concurrent changes of one incarnation than it has workers. */
function limitConcurrency({ system, report }: CrashSystem): void {
  const open = new Map<string, number>()
  system.onCall(({ process, incarnation, method }, phase) => {
    if (!CHANGES.includes(method)) return
    const key = `${process} ${incarnation}`
    const count = (open.get(key) ?? 0) + (phase === 'begins' ? 1 : -1)
    open.set(key, count)
    if (count > WORKERS) report('overlap', `${count} changes at once, with ${WORKERS} workers`)
  })
}

function followEvents({ view }: CrashSystem): ReadonlyMap<string, ReadonlySet<string>> {
  const events = new Map<string, Set<string>>()
  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of !== 'event' || !change.next) continue
      const { involvedObject, reason, message } = change.next
      const name = involvedObject?.name ?? ''
      events.set(name, (events.get(name) ?? new Set()).add(`${reason}: ${message}`))
    }
  })
  return events
}

function stateOf({ view, driver }: CrashSystem): string {
  // The notes about undo and requested attributes depend on the way; the checkers compare them with the driver.
  const objects = objectTexts(view, [UNDO, ATTRIBUTES])
  const used = [...view.quotas.values()].map(
    ({ metadata, status }) => `quota ${metadata.name}: ${JSON.stringify(status?.used)}`,
  )
  const held = Object.values(driver.state().volumes).map(({ id, capacityBytes, mutableParameters }) => {
    const attributes = Object.entries(mutableParameters).sort().flat().join(' ')
    return `in the driver: ${id}, ${capacityBytes / gi(1)}Gi, ${attributes}`
  })
  return [...objects, ...used, ...held].sort().join('\n')
}

interface Step {
  /** What one edit writes into the claim's spec. */
  readonly edit: object
  isDue(): boolean
}

type Claim = ObjectOf<'claim'>

/** By claim, the edits of its user, and when. All claims start with the class silver. */
function stepsOf(
  claim: (name: string) => Claim | undefined,
  isCalled: (name: string) => boolean,
): Record<string, Step[]> {
  const classed = (volumeAttributesClassName: string) => ({ volumeAttributesClassName })
  const amounts = (requests: object) => ({ resources: { requests } })
  const atOnce = (edit: object): Step => ({ edit, isDue: () => true })
  const once = (name: string, isTime: (status: Claim['status']) => boolean, edit: object): Step => ({
    edit,
    isDue: () => isTime(claim(name)?.status),
  })
  return {
    plain: [atOnce(classed('gold'))],
    undone: [atOnce(classed('gold')), { edit: classed('silver'), isDue: () => isCalled('undone') }],
    refused: [
      atOnce(classed('odd')),
      once('refused', (status) => status?.modifyVolumeStatus?.status === 'Infeasible', classed('silver')),
    ],
    stubborn: [atOnce(classed('odd'))],
    patient: [atOnce(classed('late'))],
    larger: [atOnce({ ...classed('gold'), ...amounts({ storage: '3Gi' }) })],
    fast: [
      atOnce(amounts({ throughput: '20Mi' })),
      once('fast', (status) => status?.capacity?.throughput === '20Mi', amounts({ throughput: '10Mi' })),
    ],
    both: [atOnce({ ...classed('bronze'), ...amounts({ iops: '700', throughput: '20Mi' }) })],
    all: [atOnce({ ...classed('gold'), ...amounts({ storage: '3Gi', throughput: '30Mi' }) })],
  }
}

function isIn(whole: unknown, part: unknown): boolean {
  if (typeof part !== 'object' || part === null) return String(whole) === String(part)
  return Object.entries(part).every(([key, value]) =>
    isIn((whole as Record<string, unknown> | undefined)?.[key], value),
  )
}
