// Breaks things as a plan says. What lasts ends by itself, or when everything is healed.
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { FakeRule } from '../../csi/fake/index.ts'
import { OUT_OF_SERVICE_TAINT } from '../../volumes/attachment-names.ts'
import type { SimDriver } from '../driver.ts'
import type { Losses } from '../network.ts'
import type { SimProcess } from '../process.ts'
import type { FaultAct, Weather } from './plan.ts'
import type { Stage } from './stage.ts'
import { DRIVERS, type DriverName } from './universe.ts'

export interface Faults {
  begin(weather: Weather): void
  strike(act: FaultAct): void
  /** Nothing that was begun goes on. */
  end(): void
  /** Once everything is healed: nobody says any more that a node is lost. */
  takeBack(): void
}

/** What a driver does to calls for a while, beside what chance does. */
interface Spell {
  readonly untilMs: number
  readonly method?: string
  left: number
  readonly rule: FakeRule
}

const TAKING_ROOM = ['CreateVolume', 'ControllerExpandVolume']
const RESTART_MS = 1_000
const SAID_LOST_MS = 40_000
const RESTART_MS_MAX = 20_000
/** Lost processes answer to nobody. */
const LOST_SHARE = 1

export function createFaults(stage: Stage): Faults {
  const { cluster, drivers, processes, nodes } = stage
  const { world, network, disk } = cluster
  const spells = new Map<DriverName, Spell[]>(DRIVERS.map((name) => [name, []]))
  /** Nodes that an administrator has said to be lost. */
  const saidLost = new Set<string>()
  /** Processes whose next start is planned. */
  const keptDown = new Set<SimProcess>()
  const dice = world.dice('restarts')
  let weather: Weather | undefined
  let isOver = false

  /** `run` after `ms`, unless all faults have ended by then. */
  const later = (ms: number, run: () => void): void => void world.schedule(ms, () => isOver || run())

  for (const [name, driver] of drivers) {
    driver.scripted = ({ method }) => {
      const spell = spells
        .get(name)!
        .find((one) => one.left > 0 && world.nowMs < one.untilMs && (one.method ?? method) === method)
      if (!spell) return undefined
      spell.left--
      return spell.rule
    }
  }

  function cast(driver: DriverName, spell: Omit<Spell, 'left'> & { readonly left?: number }): void {
    const known = spells.get(driver)!.filter(({ left, untilMs }) => left > 0 && world.nowMs < untilMs)
    spells.set(driver, [...known, { left: Number.POSITIVE_INFINITY, ...spell }])
  }

  const driverOf = (name: DriverName): SimDriver => drivers.get(name)!

  const blows: { readonly [D in FaultAct['do']]: (act: Extract<FaultAct, { readonly do: D }>) => void } = {
    crash({ process: name, downMs }) {
      const process = processes.get(name)
      if (!process?.alive) return
      keptDown.add(process)
      process.crash()
      later(downMs, () => {
        keptDown.delete(process)
        process.start()
      })
    },
    freeze: ({ process, ms }) => freeze(process, ms),
    'jump clock': ({ process, byMs }) => processes.get(process)?.jumpClock(byMs),
    'cut power'({ node: name, downMs, isSaidLost }) {
      const node = nodes.get(name)
      node?.cutPower()
      if (isSaidLost) later(Math.min(SAID_LOST_MS, downMs / 2), () => node?.isOn || sayLost(name, true))
      later(downMs, () => {
        if (isSaidLost) sayLost(name, false)
        node?.boot()
      })
    },
    'break watches'() {
      world.tally('all watches broken')
      network.serverDied()
    },
    'cut history'({ process, plural, ms }) {
      world.tally('history cut')
      network.cutHistory(ms, { process, plural })
    },
    'refuse writes'({ ms }) {
      world.tally('disk full')
      disk.faults.refuse = 1
      later(ms, () => {
        disk.faults.refuse = weather?.diskRefuses ?? 0
      })
    },
    'bad network': ({ process, lose, ms, only }) =>
      losing(process, { share: lose, onlyReplies: only === 'replies' }, ms),
    'driver fails'({ driver, method, code, times }) {
      const effect = { do: 'fail', code, message: 'as planned' } as const
      cast(driver, { untilMs: Number.POSITIVE_INFINITY, method, left: times, rule: { effect } })
    },
    'driver hangs'({ driver, method, ms }) {
      world.tally('driver hangs')
      cast(driver, { untilMs: world.nowMs + ms, method, rule: { effect: { do: 'hang' } } })
      later(ms, () => driverOf(driver).script.release())
    },
    'lose replies'({ driver, ms }) {
      const { faults } = driverOf(driver)
      faults.loseReply = 1
      later(ms, () => {
        faults.loseReply = weather?.drivers[driver]?.loseReply ?? 0
      })
    },
    'fill pool'({ driver, ms }) {
      world.tally('pool full')
      const effect = { do: 'fail', code: 'RESOURCE_EXHAUSTED', message: 'the pool is full' } as const
      for (const method of TAKING_ROOM) cast(driver, { untilMs: world.nowMs + ms, method, rule: { effect } })
    },
    'lose state'({ driver: name }) {
      const driver = driverOf(name)
      world.tally('state lost')
      driver.process.crash()
      driver.loseState()
      later(RESTART_MS, () => driver.process.start())
    },
    'report late'({ driver, ms }) {
      world.tally('reports late')
      driverOf(driver).freezeCapacity()
      later(ms, () => driverOf(driver).unfreezeCapacity())
    },
  }

  /** Whoever watches over processes starts again what has crashed, sooner or later. */
  function watchOver(process: SimProcess): void {
    const { crash } = process
    process.crash = () => {
      if (!process.alive) return
      crash()
      if (!keptDown.has(process)) later(dice() * RESTART_MS_MAX, () => keptDown.has(process) || process.start())
    }
  }

  /** An administrator knows that the node is off, and says so; or takes it back before the node is on again. */
  function sayLost(name: string, isLost: boolean): void {
    if (isLost) saidLost.add(name)
    const taints = isLost ? [{ key: OUT_OF_SERVICE_TAINT, effect: 'NoExecute' }] : null
    const patch = { type: 'merge', body: { spec: { taints } } } as const
    world.note(`people: admin says that ${name} is ${isLost ? 'out of service' : 'in service again'}`)
    cluster
      .direct()
      ?.patch(nodeKind, { name }, patch)
      .catch(() => {}) // the server is failing, or the node's object is gone
  }

  /** A server or driver that stands still answers nobody; it is their callers who notice. */
  function freeze(name: string, ms: number): void {
    const driver = DRIVERS.find((one) => name === `driver ${one}`)
    if (driver) {
      world.tally('driver hangs')
      cast(driver, { untilMs: world.nowMs + ms, rule: { effect: { do: 'hang' } } })
      later(ms, () => driverOf(driver).script.release())
    } else if (name === 'server') losing(undefined, { share: LOST_SHARE }, ms)
    else processes.get(name)?.freeze(ms)
  }

  function losing(process: string | undefined, losses: Losses, ms: number): void {
    world.tally('network bad')
    const names = process === undefined ? [...processes.keys()] : [process]
    for (const name of names) network.losing.set(name, losses)
    later(ms, () => {
      for (const name of names) network.losing.delete(name)
    })
  }

  return {
    strike(act) {
      if (!isOver) blows[act.do](act as never)
    },
    begin(bad) {
      weather = bad
      Object.assign(network.faults, bad.network)
      disk.faults.refuse = bad.diskRefuses
      for (const [name, faults] of Object.entries(bad.drivers))
        Object.assign(driverOf(name as DriverName).faults, faults)
      for (const [name, rate] of Object.entries(bad.crashes)) {
        const process = processes.get(name)
        if (process) process.crashRate = rate
      }
      for (const process of processes.values()) watchOver(process)
    },
    end() {
      isOver = true
    },
    takeBack() {
      for (const name of saidLost) sayLost(name, false)
    },
  }
}
