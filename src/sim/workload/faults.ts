// Generates the planned faults. generate-plan.ts places most of them right after a user action.
import { CSI_CODES, type CsiFailureCode } from '../../csi/index.ts'
import { DRIVERS, type DriverName } from '../plan/catalog.ts'
import type { Fault, Setup } from '../plan/plan.ts'
import { agentOf, clientsOf, controlProcesses, driverProcess, nodesOf, processesOf } from '../plan/process-names.ts'
import type { Rng } from './rng.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60_000

/** UNIMPLEMENTED is a fixed property of a driver and never temporary. */
const FAILURE_CODES = CSI_CODES.filter((code): code is CsiFailureCode => code !== 'OK' && code !== 'UNIMPLEMENTED')

const NODE_METHODS = ['NodePublishVolume', 'NodeUnpublishVolume'] as const
const STAGING_NODE_METHODS = [...NODE_METHODS, 'NodeStageVolume', 'NodeUnstageVolume', 'NodeExpandVolume'] as const
const OPTIONAL_CONTROLLER_METHODS = ['ControllerExpandVolume', 'ControllerModifyVolume', 'GetCapacity'] as const
/** CreateVolume is contained twice, so that it is chosen twice as often. */
const BASIC_METHODS = ['CreateVolume', 'CreateVolume', 'DeleteVolume'] as const
/** The methods of each driver that can fail or hang. */
export const METHODS: Readonly<Record<DriverName, readonly string[]>> = {
  'local.sim': [...BASIC_METHODS, ...OPTIONAL_CONTROLLER_METHODS, ...STAGING_NODE_METHODS],
  'net.sim': [
    ...BASIC_METHODS,
    ...OPTIONAL_CONTROLLER_METHODS,
    ...STAGING_NODE_METHODS,
    'ControllerPublishVolume',
    'ControllerUnpublishVolume',
  ],
  'basic.sim': [...BASIC_METHODS, ...NODE_METHODS],
}

export function generateFault(rng: Rng, setup: Setup): Fault {
  const seconds = (min: number, max: number) => rng.between(min * SECOND_MS, max * SECOND_MS)
  const driver = rng.pickWeighted<DriverName>([
    [4, 'net.sim'],
    [4, 'local.sim'],
    [1, 'basic.sim'],
  ])
  const someProcess = () => rng.pick(processesOf(setup))
  const someControl = () => rng.pick(controlProcesses(setup))
  const generate = rng.pickWeighted<() => Fault>([
    [8, () => ({ do: 'crash', process: someCrashingProcess(rng, setup), downMs: downMs(rng) })],
    [4, () => ({ do: 'freeze', process: rng.chance(0.7) ? someControl() : someProcess(), ms: seconds(2, 90) })],
    [2, () => ({ do: 'jump clock', process: someProcess(), byMs: jumpMs(rng) })],
    [2, () => generatePowerCut(rng, setup)],
    [2, () => ({ do: 'break watches' })],
    [2, () => generateHistoryCut(rng, setup)],
    [2, () => ({ do: 'refuse writes', ms: seconds(1, 25) })],
    [4, () => generateBadNetwork(rng, setup)],
    [7, () => generateDriverFailure(rng, driver)],
    [4, () => ({ do: 'driver hangs', driver, method: rng.pick(METHODS[driver]), ms: seconds(5, 150) })],
    [4, () => ({ do: 'lose replies', driver, ms: seconds(2, 60) })],
    [2, () => ({ do: 'fill pool', driver, ms: seconds(20, 240) })],
    [1, () => ({ do: 'report late', driver: 'local.sim', ms: seconds(20, 300) })],
  ])
  return generate()
}

/**
 * Returns a fault that makes a driver lose its state. Very few plans contain this fault, because the checkers exempt many objects
 * after it.
 */
export const generateStateLoss = (rng: Rng): Fault => ({ do: 'lose state', driver: rng.pick(DRIVERS) })

/** Returns a fault that restarts an agent, which registers its node again. */
export const generateAgentRestart = (rng: Rng, node: string): Fault => ({
  do: 'crash',
  process: agentOf(node),
  downMs: rng.between(5 * SECOND_MS, 2 * MINUTE_MS),
})

function someCrashingProcess(rng: Rng, setup: Setup): string {
  const choice = rng.below(10)
  if (choice < 2) return 'server'
  if (choice < 7) return rng.pick(controlProcesses(setup))
  return choice < 9 ? agentOf(rng.pick(nodesOf(setup))) : driverProcess(rng.pick(DRIVERS))
}

const downMs = (rng: Rng): number =>
  rng.pickWeighted([
    [3, rng.between(100, 2_000)],
    [4, rng.between(2, 30) * SECOND_MS],
    [1, rng.between(30, 150) * SECOND_MS],
  ])

const jumpMs = (rng: Rng): number =>
  (rng.chance(0.5) ? 1 : -1) * rng.pick([1, 5, 20, 60, 300, 900]) * SECOND_MS + rng.below(SECOND_MS)

/** Returns a fault that cuts the power of a node, sometimes long enough for the node to count as lost. */
const generatePowerCut = (rng: Rng, setup: Setup): Fault => ({
  do: 'cut power',
  node: rng.pick(nodesOf(setup)),
  downMs: rng.chance(0.6) ? rng.between(10, 60) * SECOND_MS : rng.between(2, 9) * MINUTE_MS,
  isOutOfService: rng.chance(0.4),
})

const WATCHED_PLURALS = [
  'persistentvolumes',
  'persistentvolumeclaims',
  'pods',
  'nodes',
  'volumeattachments',
  'storageclasses',
]

/** Returns a fault that cuts the history for a shorter time than the checkers give a process to receive a change. */
const generateHistoryCut = (rng: Rng, setup: Setup): Fault => ({
  do: 'cut history',
  ...(rng.chance(0.4) ? {} : { process: rng.pick(clientsOf(setup)) }),
  ...(rng.chance(0.5) ? {} : { plural: rng.pick(WATCHED_PLURALS) }),
  ms: rng.chance(0.3) ? 0 : rng.between(15, 80) * SECOND_MS,
})

function generateBadNetwork(rng: Rng, setup: Setup): Fault {
  const isForAll = rng.chance(0.3)
  const clients = clientsOf(setup)
  return {
    do: 'bad network',
    ...(isForAll ? {} : { process: rng.pick(clients) }),
    ms: rng.between(5, isForAll ? 40 : 120) * SECOND_MS,
    lose: rng.chance(0.4) ? 1 : Math.round(rng.between(10, 90)) / 100,
    ...(rng.chance(0.3) ? { only: 'replies' } : {}),
  }
}

const generateDriverFailure = (rng: Rng, driver: DriverName): Fault => ({
  do: 'driver fails',
  driver,
  method: rng.pick(METHODS[driver]),
  code: rng.pick(FAILURE_CODES),
  times: rng.pickWeighted([
    [5, 1],
    [3, rng.between(2, 4)],
    [1, rng.between(5, 12)],
  ]),
})
