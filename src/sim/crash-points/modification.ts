// Crash scenario: users change classes, amounts and sizes of claims, the driver rejects some changes, and users revert some,
// while one process crashes at one point. The final state includes the driver, volumes, claims and quotas.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import { isAlreadyExists } from '../../api/status-error.ts'
import { ATTRIBUTES, UNDO } from '../checkers/attributes.ts'
import type { ObjectOf } from '../engine/view.ts'
import { expandableSettings, gi, handleOf } from './bound-claims.ts'
import {
  type Crash,
  type CrashRun,
  type CrashSystem,
  createCrashSystem,
  finish,
  type Mode,
  NAMESPACE,
  POLL_INTERVAL_MS,
} from './crash-point.ts'
import { formatObjects } from './expansion.ts'
import { createClass, createModifiableClaims, runChanger, WORKERS } from './modifiable-claims.ts'
import { runNodeExpansion } from './volume-change-processes.ts'

const SEED = 6
const END_MS_MAX = 1_200_000
/** Longer than the backoff after rejected attributes. */
const REST_MS = 400_000
const CHANGE_METHODS = ['ControllerModifyVolume', 'ControllerExpandVolume']
const NAMES = ['plain', 'undone', 'refused', 'stubborn', 'patient', 'larger']
/** Claims that request amounts, which only a server with transactions accepts. */
const NAMES_WITH_AMOUNTS = ['fast', 'both', 'all']

export interface ModificationCrashRun extends CrashRun {
  /** By claim name, each event once: `VolumeModify: …`. */
  readonly events: Readonly<Record<string, readonly string[]>>
}

export async function runModificationCrash(mode: Mode, crash?: Crash): Promise<ModificationCrashRun> {
  const names = [...NAMES, ...(mode === 'transactions' ? NAMES_WITH_AMOUNTS : [])]
  const crashSystem = await createCrashSystem({
    seed: SEED,
    mode,
    at: crash?.at,
    driverSettings: expandableSettings(),
    prepare: (client, driver) => createModifiableClaims(client, driver, names),
    addProcesses(host) {
      host.add('changer', runChanger)
      host.add('node', runNodeExpansion)
    },
  })
  const { simulation, system, driver, effects, claim } = crashSystem
  checkConcurrency(crashSystem)
  const events = followEvents(crashSystem)
  const isCalled = (name: string) =>
    driver.record.calls.some(({ method, volume }) => method === 'ControllerModifyVolume' && volume === handleOf(name))
  // Every response about `undone` is lost until its user reverts it; the first call about `plain` fails.
  let hasFailed = false
  driver.script.match = (method, [id = '']) => {
    if (method !== 'ControllerModifyVolume') return undefined
    if (id === handleOf('undone') && claim('undone')?.spec?.volumeAttributesClassName === 'gold')
      return { effect: { do: 'loseReply', as: 'unavailable' } }
    if (id !== handleOf('plain') || hasFailed) return undefined
    hasFailed = true
    return { effect: { do: 'fail', code: 'INTERNAL' } }
  }

  const stepsByClaim = planSteps(claim, isCalled)
  const sequences = Object.fromEntries(names.map((name) => [name, stepsByClaim[name]!]))
  let isLateClassCreated = false
  for (const [name, steps] of Object.entries(sequences)) followSteps(name, steps)
  createLateClass()

  /** Acts as one user: makes the next edit when it is due, and again until the claim has it in its spec. */
  function followSteps(name: string, steps: Step[]): void {
    if (steps[0] && hasFields(claim(name)?.spec, steps[0].edit)) steps.shift()
    const [step] = steps
    if (!step) return
    const client = system.cluster.directClient()
    if (client && step.isDue()) {
      const body = { spec: step.edit }
      const ref = { namespace: NAMESPACE, name }
      void client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body }).catch(() => {})
    }
    simulation.schedule(POLL_INTERVAL_MS, () => followSteps(name, steps))
  }

  /** Creates the class `late` once a claim waits for it. */
  function createLateClass(): void {
    if (isLateClassCreated) return
    const client = system.cluster.directClient()
    if (client && claim('patient')?.status?.modifyVolumeStatus?.status === 'Pending') {
      createClass(client, 'late').then(
        () => {
          isLateClassCreated = true
        },
        (error) => {
          isLateClassCreated ||= isAlreadyExists(error)
        },
      )
    }
    simulation.schedule(POLL_INTERVAL_MS, createLateClass)
  }

  const end = () => describeState(crashSystem)
  await finish(crashSystem, {
    expected: crash?.expected,
    end,
    isDone: () => isLateClassCreated && Object.values(sequences).every((steps) => steps.length === 0),
    remainingSteps: () =>
      Object.entries(sequences).flatMap(([name, steps]) => steps.map(({ edit }) => `${name} ${JSON.stringify(edit)}`)),
    endMsMax: END_MS_MAX,
    restMs: REST_MS,
  })
  return {
    effects: effects.list.map(({ process, description }) => `${process}: ${description}`),
    end: end(),
    steps: simulation.steps,
    events: Object.fromEntries(names.map((name) => [name, [...(events.get(name) ?? [])]])),
  }
}

/** Reports an incarnation that makes more changes at once than it has workers. */
function checkConcurrency({ system, report }: CrashSystem): void {
  const openCalls = new Map<string, number>()
  system.onCall(({ process, incarnation, method }, phase) => {
    if (!CHANGE_METHODS.includes(method)) return
    const key = `${process} ${incarnation}`
    const count = (openCalls.get(key) ?? 0) + (phase === 'begins' ? 1 : -1)
    openCalls.set(key, count)
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

function describeState({ view, driver }: CrashSystem): string {
  // The annotations about undo and attributes depend on the order of steps; the checkers compare them with the driver.
  const objects = formatObjects(view, [UNDO, ATTRIBUTES]).map(removeUncertainParts)
  const quotaUsages = [...view.quotas.values()].map(
    ({ metadata, status }) => `quota ${metadata.name}: ${JSON.stringify(status?.used)}`,
  )
  const driverVolumes = Object.values(driver.state().volumes).map(({ id, capacityBytes, mutableParameters }) => {
    const attributes = Object.entries(mutableParameters).sort().flat().join(' ')
    return `in the driver: ${id}, ${capacityBytes / gi(1)}Gi, ${attributes}`
  })
  return [...objects, ...quotaUsages, ...driverVolumes].sort().join('\n')
}

/**
 * Removes what a crash may legitimately add. If the response to a rejected class is lost, the driver is called again with
 * the previous class: its amounts are then reported, and a condition lists attributes whose previous value is not known.
 */
function removeUncertainParts(text: string): string {
  const object = JSON.parse(text) as { spec: ClaimOrVolumeSpec; status: ClaimOrVolumeStatus }
  const { spec, status } = object
  for (const name of IO_RESOURCES) {
    if (spec.resources?.requests?.[name] !== undefined) continue
    delete status.capacity?.[name]
    delete spec.capacity?.[name]
  }
  status.conditions = status.conditions.filter((condition) => !condition.includes('the previous values of'))
  return JSON.stringify(object)
}

interface ClaimOrVolumeSpec {
  readonly resources?: { readonly requests?: Readonly<Record<string, string>> }
  readonly capacity?: Record<string, string>
}

interface ClaimOrVolumeStatus {
  readonly capacity?: Record<string, string>
  conditions: readonly string[]
}

interface Step {
  /** The fields of the claim's spec that the edit writes. */
  readonly edit: object
  isDue(): boolean
}

type Claim = ObjectOf<'claim'>

/** Returns the edits of each claim's user, and when they are due. All claims start with the class silver. */
function planSteps(
  claim: (name: string) => Claim | undefined,
  isCalled: (name: string) => boolean,
): Record<string, Step[]> {
  const classEdit = (volumeAttributesClassName: string) => ({ volumeAttributesClassName })
  const requestsEdit = (requests: object) => ({ resources: { requests } })
  const immediateStep = (edit: object): Step => ({ edit, isDue: () => true })
  const conditionalStep = (name: string, isReady: (status: Claim['status']) => boolean, edit: object): Step => ({
    edit,
    isDue: () => isReady(claim(name)?.status),
  })
  return {
    plain: [immediateStep(classEdit('gold'))],
    undone: [immediateStep(classEdit('gold')), { edit: classEdit('silver'), isDue: () => isCalled('undone') }],
    refused: [
      immediateStep(classEdit('odd')),
      conditionalStep('refused', (status) => status?.modifyVolumeStatus?.status === 'Infeasible', classEdit('silver')),
    ],
    stubborn: [immediateStep(classEdit('odd'))],
    patient: [immediateStep(classEdit('late'))],
    larger: [immediateStep({ ...classEdit('gold'), ...requestsEdit({ storage: '3Gi' }) })],
    fast: [
      immediateStep(requestsEdit({ throughput: '20Mi' })),
      conditionalStep(
        'fast',
        (status) => status?.capacity?.throughput === '20Mi',
        requestsEdit({ throughput: '10Mi' }),
      ),
    ],
    both: [immediateStep({ ...classEdit('bronze'), ...requestsEdit({ iops: '700', throughput: '20Mi' }) })],
    all: [immediateStep({ ...classEdit('gold'), ...requestsEdit({ storage: '3Gi', throughput: '30Mi' }) })],
  }
}

function hasFields(actual: unknown, expected: unknown): boolean {
  if (typeof expected !== 'object' || expected === null) return String(actual) === String(expected)
  return Object.entries(expected).every(([key, value]) =>
    hasFields((actual as Record<string, unknown> | undefined)?.[key], value),
  )
}
