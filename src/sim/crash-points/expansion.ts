// Crash scenario: users expand claims, request too much and lower the request again, while one process crashes at one point.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { createBoundClaims, expandableSettings, gi, handleOf } from './bound-claims.ts'
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
import { runExpander, runNodeExpansion } from './volume-change-processes.ts'

const SEED = 5
const END_MS_MAX = 1_200_000
/** Longer than the backoff after a rejected size. */
const REST_MS = 600_000
const SLOW_SIZE = '6Gi'
const NAMES = ['plain', 'twice', 'brave', 'again', 'slow', 'timid']

export async function runExpansionCrash(mode: Mode, crash?: Crash): Promise<CrashRun> {
  const crashSystem = await createCrashSystem({
    seed: SEED,
    mode,
    at: crash?.at,
    driverSettings: expandableSettings(),
    prepare: (client, driver) => createBoundClaims(client, driver, NAMES, '500Gi'),
    addProcesses(host) {
      host.add('expander', runExpander)
      host.add('node', runNodeExpansion)
    },
  })
  const { simulation, system, driver, effects, claim } = crashSystem
  const requestOf = (name: string) => claim(name)?.spec?.resources?.requests?.storage
  // Every response about `slow` is lost until its user lowers the request; the first NodeExpandVolume of `twice` fails.
  let hasFailed = false
  driver.script.match = (method, [id = '']) => {
    if (method === 'ControllerExpandVolume' && id === handleOf('slow') && requestOf('slow') === SLOW_SIZE)
      return { effect: { do: 'loseReply', as: 'unavailable' } }
    if (method !== 'NodeExpandVolume' || id !== handleOf('twice') || hasFailed) return undefined
    hasFailed = true
    return { effect: { do: 'fail', code: 'INTERNAL' } }
  }
  const sequences = planSteps(crashSystem)
  for (const [name, steps] of Object.entries(sequences)) followSteps(name, steps)

  /** Acts as one user: requests the next size when it is due, and again until the claim has it in its spec. */
  function followSteps(name: string, steps: Step[]): void {
    if (steps[0] && requestOf(name) === steps[0].size) steps.shift()
    const [step] = steps
    if (!step) return
    const client = system.cluster.directClient()
    if (client && step.isDue()) {
      const body = { spec: { resources: { requests: { storage: step.size } } } }
      const ref = { namespace: NAMESPACE, name }
      void client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body }).catch(() => {})
    }
    simulation.schedule(POLL_INTERVAL_MS, () => followSteps(name, steps))
  }

  const end = () => describeState(crashSystem)
  await finish(crashSystem, {
    expected: crash?.expected,
    end,
    isDone: () => Object.values(sequences).every((steps) => steps.length === 0),
    remainingSteps: () =>
      Object.entries(sequences).flatMap(([name, steps]) => steps.map(({ size }) => `${name} ${size}`)),
    endMsMax: END_MS_MAX,
    restMs: REST_MS,
  })
  return {
    effects: effects.list.map(({ process, description }) => `${process}: ${description}`),
    end: end(),
    steps: simulation.steps,
  }
}

interface Step {
  readonly size: string
  isDue(): boolean
}

/** Returns the sizes that each claim's user requests, and when they are due. The case numbers are those of REX-5. */
function planSteps({ claim, driver }: CrashSystem): Record<string, Step[]> {
  const stateOfClaim = (name: string) => claim(name)?.status?.allocatedResourceStatuses?.storage
  const capacityOf = (name: string) => Number(quantityToBytes(claim(name)?.status?.capacity?.storage ?? '0'))
  const immediateStep = (size: string): Step => ({ size, isDue: () => true })
  const stepAfterRejection = (name: string, size: string): Step => ({
    size,
    isDue: () => stateOfClaim(name) === 'ControllerResizeInfeasible',
  })
  const stepAfterExpansion = (name: string, bytes: number, size: string): Step => ({
    size,
    isDue: () => capacityOf(name) >= bytes && stateOfClaim(name) === undefined,
  })
  const stepAfterCall = (name: string, size: string): Step => ({
    size,
    isDue: () =>
      driver.record.calls.some(
        ({ method, volume }) => method === 'ControllerExpandVolume' && volume === handleOf(name),
      ),
  })
  return {
    plain: [immediateStep('3Gi')],
    twice: [immediateStep('3Gi'), stepAfterExpansion('twice', gi(3), '5Gi')],
    brave: [immediateStep('50Gi'), stepAfterRejection('brave', '2Gi')], // case 1
    again: [immediateStep('50Gi'), stepAfterRejection('again', '2Gi'), stepAfterExpansion('again', gi(2), '60Gi')], // case 2
    slow: [immediateStep(SLOW_SIZE), stepAfterCall('slow', '2Gi')], // case 3
    timid: [immediateStep('50Gi'), stepAfterRejection('timid', '1Gi')], // cancelled
  }
}

function describeState({ view, driver }: CrashSystem): string {
  const driverVolumes = Object.values(driver.state().volumes).map(
    ({ id, capacityBytes, onNodes }) =>
      `in the driver: ${id}, ${capacityBytes / gi(1)}Gi, file system ${Object.values(onNodes)[0]!.fileSystemBytes / gi(1)}Gi`,
  )
  return [...formatObjects(view), ...driverVolumes].sort().join('\n')
}

/** Returns claims and volumes without times, versions, references and the ignored annotations. */
export function formatObjects(
  { claims, volumes }: CrashSystem['view'],
  ignoredAnnotations: readonly string[] = [],
): string[] {
  return [...claims.values(), ...volumes.values()].map(({ metadata, spec, status }) => {
    const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => !ignoredAnnotations.includes(key))
    const { claimRef: _, ...comparedSpec } = { claimRef: undefined, ...spec }
    const { conditions = [], ...comparedStatus } = {
      conditions: undefined,
      lastPhaseTransitionTime: undefined,
      ...status,
    }
    const conditionTexts = (conditions as readonly { type: string; message?: string }[])
      .map(({ type, message = '' }) => `${type}: ${message}`)
      .sort()
    return JSON.stringify({
      name: metadata.name,
      annotations: Object.fromEntries(annotations),
      spec: comparedSpec,
      status: { ...comparedStatus, lastPhaseTransitionTime: undefined, conditions: conditionTexts },
    })
  })
}
