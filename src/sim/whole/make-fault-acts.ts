// What breaks in a plan, beside its weather: mostly right after somebody has done something, when most is under way.
import { CSI_CODES, type CsiFailureCode } from '../../csi/index.ts'
import type { Dice } from './dice.ts'
import type { FaultAct, Setup } from './plan.ts'
import { agentOf, clientsOf, controlProcesses, driverProcess, nodesOf, processesOf } from './processes.ts'
import { DRIVERS, type DriverName } from './universe.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60_000

/** What a driver cannot do it never can: UNIMPLEMENTED does not come and go. */
const CODES = CSI_CODES.filter((code): code is CsiFailureCode => code !== 'OK' && code !== 'UNIMPLEMENTED')

/** What each driver is asked for. */
const ON_NODE = ['NodePublishVolume', 'NodeUnpublishVolume'] as const
const ON_NODE_STAGED = [...ON_NODE, 'NodeStageVolume', 'NodeUnstageVolume', 'NodeExpandVolume'] as const
const CHANGES = ['ControllerExpandVolume', 'ControllerModifyVolume', 'GetCapacity'] as const
const BASIC = ['CreateVolume', 'CreateVolume', 'DeleteVolume'] as const
export const METHODS: Readonly<Record<DriverName, readonly string[]>> = {
  'local.sim': [...BASIC, ...CHANGES, ...ON_NODE_STAGED],
  'net.sim': [...BASIC, ...CHANGES, ...ON_NODE_STAGED, 'ControllerPublishVolume', 'ControllerUnpublishVolume'],
  'basic.sim': [...BASIC, ...ON_NODE],
}

export function makeFault(dice: Dice, setup: Setup): FaultAct {
  const seconds = (least: number, most: number) => dice.between(least * SECOND_MS, most * SECOND_MS)
  const driver = dice.weighted<DriverName>([
    [4, 'net.sim'],
    [4, 'local.sim'],
    [1, 'basic.sim'],
  ])
  const someProcess = () => dice.pick(processesOf(setup))
  const someControl = () => dice.pick(controlProcesses(setup))
  const make = dice.weighted<() => FaultAct>([
    [8, () => ({ do: 'crash', process: crashing(dice, setup), downMs: downMs(dice) })],
    [4, () => ({ do: 'freeze', process: dice.chance(0.7) ? someControl() : someProcess(), ms: seconds(2, 90) })],
    [2, () => ({ do: 'jump clock', process: someProcess(), byMs: jumpMs(dice) })],
    [2, () => cutPower(dice, setup)],
    [2, () => ({ do: 'break watches' })],
    [2, () => cutHistory(dice, setup)],
    [2, () => ({ do: 'refuse writes', ms: seconds(1, 25) })],
    [4, () => badNetwork(dice, setup)],
    [7, () => driverFails(dice, driver)],
    [4, () => ({ do: 'driver hangs', driver, method: dice.pick(METHODS[driver]), ms: seconds(5, 150) })],
    [4, () => ({ do: 'lose replies', driver, ms: seconds(2, 60) })],
    [2, () => ({ do: 'fill pool', driver, ms: seconds(20, 240) })],
    [1, () => ({ do: 'report late', driver: 'local.sim', ms: seconds(20, 300) })],
  ])
  return make()
}

/** Very few plans have this: what is lost is lost, and much can no longer be judged. */
export const loseState = (dice: Dice): FaultAct => ({ do: 'lose state', driver: dice.pick(DRIVERS) })

/** Whoever registers a node does so when it starts. */
export const restartAgent = (dice: Dice, node: string): FaultAct => ({
  do: 'crash',
  process: agentOf(node),
  downMs: dice.between(5 * SECOND_MS, 2 * MINUTE_MS),
})

function crashing(dice: Dice, setup: Setup): string {
  const what = dice.roll(10)
  if (what < 2) return 'server'
  if (what < 7) return dice.pick(controlProcesses(setup))
  return what < 9 ? agentOf(dice.pick(nodesOf(setup))) : driverProcess(dice.pick(DRIVERS))
}

const downMs = (dice: Dice): number =>
  dice.weighted([
    [3, dice.between(100, 2_000)],
    [4, dice.between(2, 30) * SECOND_MS],
    [1, dice.between(30, 150) * SECOND_MS],
  ])

const jumpMs = (dice: Dice): number =>
  (dice.chance(0.5) ? 1 : -1) * dice.pick([1, 5, 20, 60, 300, 900]) * SECOND_MS + dice.roll(SECOND_MS)

/** Long enough, in some, that the node is given up. */
const cutPower = (dice: Dice, setup: Setup): FaultAct => ({
  do: 'cut power',
  node: dice.pick(nodesOf(setup)),
  downMs: dice.chance(0.6) ? dice.between(10, 60) * SECOND_MS : dice.between(2, 9) * MINUTE_MS,
  isSaidLost: dice.chance(0.4),
})

const WATCHED = ['persistentvolumes', 'persistentvolumeclaims', 'pods', 'nodes', 'volumeattachments', 'storageclasses']

/** Not so long that nobody could be blamed any more for what he does not know. */
const cutHistory = (dice: Dice, setup: Setup): FaultAct => ({
  do: 'cut history',
  ...(dice.chance(0.4) ? {} : { process: dice.pick(clientsOf(setup)) }),
  ...(dice.chance(0.5) ? {} : { plural: dice.pick(WATCHED) }),
  ms: dice.chance(0.3) ? 0 : dice.between(15, 80) * SECOND_MS,
})

function badNetwork(dice: Dice, setup: Setup): FaultAct {
  const everybody = dice.chance(0.3)
  const reached = clientsOf(setup)
  return {
    do: 'bad network',
    ...(everybody ? {} : { process: dice.pick(reached) }),
    ms: dice.between(5, everybody ? 40 : 120) * SECOND_MS,
    lose: dice.chance(0.4) ? 1 : Math.round(dice.between(10, 90)) / 100,
    ...(dice.chance(0.3) ? { only: 'replies' } : {}),
  }
}

const driverFails = (dice: Dice, driver: DriverName): FaultAct => ({
  do: 'driver fails',
  driver,
  method: dice.pick(METHODS[driver]),
  code: dice.pick(CODES),
  times: dice.weighted([
    [5, 1],
    [3, dice.between(2, 4)],
    [1, dice.between(5, 12)],
  ]),
})
