// Injects the faults of a plan into the system. A lasting fault ends after its duration, or when the system is healed.

import { OUT_OF_SERVICE_TAINT } from '../../api/kinds/node/fencing.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { FakeRule } from '../../csi/fake/index.ts'
import type { SimDriver } from '../environment/driver.ts'
import type { Losses } from '../environment/network.ts'
import type { SimProcess } from '../environment/process.ts'
import { DRIVERS, type DriverName } from '../plan/catalog.ts'
import type { Fault, FaultRates } from '../plan/plan.ts'
import type { System } from './system.ts'

export interface FaultInjector {
  setRates(rates: FaultRates): void
  inject(fault: Fault): void
  /** Injects no further faults. Scheduled ends of faults are dropped too, because healing follows. */
  stop(): void
  /**
   * Acts as an administrator after everything is healed: untaints the nodes that are back, and fences those that are lost for
   * good.
   */
  correctTaints(): void
}

/** How a driver responds to some calls for a limited time, in addition to its random faults. */
interface DriverRule {
  readonly untilMs: number
  readonly method?: string
  remainingCalls: number
  readonly rule: FakeRule
}

const CAPACITY_METHODS = ['CreateVolume', 'ControllerExpandVolume']
const DRIVER_RESTART_DELAY_MS = 1_000
const TAINT_DELAY_MS = 40_000
const FENCE_RETRY_DELAY_MS = 5_000
const RESTART_DELAY_MS_MAX = 20_000
/** The share of messages that a frozen server loses. */
const ALL_MESSAGES = 1

export function createFaultInjector(system: System): FaultInjector {
  const { cluster, drivers, processes, nodes } = system
  const { simulation, network, disk } = cluster
  const rules = new Map<DriverName, DriverRule[]>(DRIVERS.map((name) => [name, []]))
  /** Nodes that an administrator has fenced. They leave the quarantine without further action. */
  const fencedNodes = new Set<string>()
  /** Nodes that an administrator has tainted as out of service. */
  const taintedNodes = new Set<string>()
  /** Processes that a fault keeps down; their start is scheduled. */
  const downProcesses = new Set<SimProcess>()
  const random = simulation.random('restarts')
  let rates: FaultRates | undefined
  let isStopped = false

  /** Runs `run` after `ms`, unless the injector has stopped by then. */
  const scheduleUnlessStopped = (ms: number, run: () => void): void =>
    void simulation.schedule(ms, () => isStopped || run())

  for (const [name, driver] of drivers) {
    driver.findRule = ({ method }) => {
      const rule = rules
        .get(name)!
        .find(
          (candidate) =>
            candidate.remainingCalls > 0 &&
            simulation.nowMs < candidate.untilMs &&
            (candidate.method ?? method) === method,
        )
      if (!rule) return undefined
      rule.remainingCalls--
      return rule.rule
    }
  }

  function addRule(
    driver: DriverName,
    rule: Omit<DriverRule, 'remainingCalls'> & { readonly remainingCalls?: number },
  ): void {
    const activeRules = rules
      .get(driver)!
      .filter(({ remainingCalls, untilMs }) => remainingCalls > 0 && simulation.nowMs < untilMs)
    rules.set(driver, [...activeRules, { remainingCalls: Number.POSITIVE_INFINITY, ...rule }])
  }

  const driverOf = (name: DriverName): SimDriver => drivers.get(name)!

  const injectors: { readonly [D in Fault['do']]: (action: Extract<Fault, { readonly do: D }>) => void } = {
    crash({ process: name, downMs }) {
      const instance = processes.get(name)
      if (!instance?.alive) return
      downProcesses.add(instance)
      instance.crash()
      scheduleUnlessStopped(downMs, () => {
        downProcesses.delete(instance)
        instance.start()
      })
    },
    freeze: ({ process, ms }) => freeze(process, ms),
    'jump clock': ({ process, byMs }) => processes.get(process)?.jumpClock(byMs),
    'cut power'({ node: name, downMs, isOutOfService }) {
      const node = nodes.get(name)
      node?.cutPower()
      if (isOutOfService)
        scheduleUnlessStopped(Math.min(TAINT_DELAY_MS, downMs / 2), () => node?.isOn || setTaint(name, true))
      // The node boots with the taint and leaves the quarantine without further action.
      scheduleUnlessStopped(downMs, () => node?.boot())
    },
    'lose node'({ node: name, how, fenceMs, backMs }) {
      const node = nodes.get(name)
      if (!node?.isReachable) return // another fault already affects the node
      if (backMs === undefined) node.loseForGood()
      else if (how === 'power') node.cutPower()
      else if (how === 'split') node.split()
      else node.suspend(backMs)
      const isLost = () => !node.isReachable
      if (fenceMs !== undefined) scheduleUnlessStopped(fenceMs, () => isLost() && fence(name, isLost))
      if (backMs !== undefined)
        scheduleUnlessStopped(backMs, () => {
          node.rejoin()
          node.resume()
          node.boot()
        })
    },
    'break watches'() {
      simulation.tally('all watches broken')
      network.breakWatches()
    },
    'cut history'({ process, plural, ms }) {
      simulation.tally('history cut')
      network.cutHistory(ms, { process, plural })
    },
    'refuse writes'({ ms }) {
      simulation.tally('disk full')
      disk.faults.refuse = 1
      scheduleUnlessStopped(ms, () => {
        disk.faults.refuse = rates?.diskErrors ?? 0
      })
    },
    'bad network': ({ process, lose, ms, only }) =>
      loseMessages(process, { share: lose, onlyReplies: only === 'replies' }, ms),
    'driver fails'({ driver, method, code, times }) {
      const effect = { do: 'fail', code, message: 'as planned' } as const
      addRule(driver, { untilMs: Number.POSITIVE_INFINITY, method, remainingCalls: times, rule: { effect } })
    },
    'driver hangs'({ driver, method, ms }) {
      simulation.tally('driver hangs')
      addRule(driver, { untilMs: simulation.nowMs + ms, method, rule: { effect: { do: 'hang' } } })
      scheduleUnlessStopped(ms, () => driverOf(driver).script.release())
    },
    'lose replies'({ driver, ms }) {
      const { faults } = driverOf(driver)
      faults.loseReply = 1
      scheduleUnlessStopped(ms, () => {
        faults.loseReply = rates?.drivers[driver]?.loseReply ?? 0
      })
    },
    'fill pool'({ driver, ms }) {
      simulation.tally('pool full')
      const effect = { do: 'fail', code: 'RESOURCE_EXHAUSTED', message: 'the pool is full' } as const
      for (const method of CAPACITY_METHODS)
        addRule(driver, { untilMs: simulation.nowMs + ms, method, rule: { effect } })
    },
    'lose state'({ driver: name }) {
      const driver = driverOf(name)
      simulation.tally('state lost')
      driver.process.crash()
      driver.loseState()
      scheduleUnlessStopped(DRIVER_RESTART_DELAY_MS, () => driver.process.start())
    },
    'report late'({ driver, ms }) {
      simulation.tally('reports late')
      driverOf(driver).freezeCapacity()
      scheduleUnlessStopped(ms, () => driverOf(driver).unfreezeCapacity())
    },
    deny({ plural, verbs, ms }) {
      simulation.tally('right denied')
      const allow = system.stockAnswers?.deny(plural, verbs)
      scheduleUnlessStopped(ms, () => allow?.())
    },
    'stop serving'({ plural, ms }) {
      simulation.tally('kind not served')
      const serve = system.stockAnswers?.stopServing(plural)
      scheduleUnlessStopped(ms, () => serve?.())
    },
  }

  /** Restarts a crashed process after a random time, as a supervisor would. */
  function supervise(process: SimProcess): void {
    const { crash } = process
    process.crash = () => {
      if (!process.alive) return
      crash()
      if (!downProcesses.has(process))
        scheduleUnlessStopped(random() * RESTART_DELAY_MS_MAX, () => downProcesses.has(process) || process.start())
    }
  }

  /** Acts as an administrator, who taints a node that is off. */
  function setTaint(name: string, isTainted: boolean): void {
    if (isTainted) taintedNodes.add(name)
    const taints = isTainted ? [{ key: OUT_OF_SERVICE_TAINT, effect: 'NoExecute' }] : null
    const patch = { type: 'merge', body: { spec: { taints } } } as const
    simulation.note(`user: admin ${isTainted ? 'taints' : 'untaints'} ${name} (out of service)`)
    cluster
      .directClient()
      ?.patch(nodeKind, { name }, patch)
      .catch(() => {}) // the server is down, or the node was deleted
  }

  /**
   * Acts as an administrator who fences a lost node: switches off a machine that still runs, and adds the taint. Retries while
   * the server is down and the node is lost.
   */
  function fence(name: string, isLost: () => boolean): void {
    const node = nodes.get(name)
    if (node?.isRunning) node.cutPower()
    fencedNodes.add(name)
    simulation.note(`user: admin fences ${name}`)
    addTaint(name, isLost).catch(() => {}) // the next attempt is scheduled
  }

  async function addTaint(name: string, isLost: () => boolean): Promise<void> {
    if (!isLost()) return
    try {
      const client = cluster.directClient()
      if (!client) throw new Error('the server is down')
      const { metadata, spec } = await client.get(nodeKind, { name })
      if (spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE_TAINT)) return
      const taints = [...(spec?.taints ?? []), { key: OUT_OF_SERVICE_TAINT, effect: 'NoExecute' }]
      const body = { metadata: { resourceVersion: metadata.resourceVersion }, spec: { taints } }
      await client.patch(nodeKind, { name }, { type: 'merge', body })
    } catch {
      simulation.schedule(FENCE_RETRY_DELAY_MS, () => void addTaint(name, isLost))
    }
  }

  /** Freezes a process. If it is the server or a driver, its callers receive no response. */
  function freeze(name: string, ms: number): void {
    const driver = DRIVERS.find((driverName) => name === `driver ${driverName}`)
    if (driver) {
      simulation.tally('driver hangs')
      addRule(driver, { untilMs: simulation.nowMs + ms, rule: { effect: { do: 'hang' } } })
      scheduleUnlessStopped(ms, () => driverOf(driver).script.release())
    } else if (name === 'server') loseMessages(undefined, { share: ALL_MESSAGES }, ms)
    else processes.get(name)?.freeze(ms)
  }

  function loseMessages(process: string | undefined, losses: Losses, ms: number): void {
    simulation.tally('network bad')
    const names = process === undefined ? [...processes.keys()] : [process]
    for (const name of names) network.lossesByProcess.set(name, losses)
    scheduleUnlessStopped(ms, () => {
      for (const name of names) network.lossesByProcess.delete(name)
    })
  }

  return {
    inject(fault) {
      if (!isStopped) injectors[fault.do](fault as never)
    },
    setRates(newRates) {
      rates = newRates
      Object.assign(network.faults, newRates.network)
      disk.faults.refuse = newRates.diskErrors
      for (const [name, faults] of Object.entries(newRates.drivers))
        Object.assign(driverOf(name as DriverName).faults, faults)
      for (const [name, rate] of Object.entries(newRates.crashes)) {
        const instance = processes.get(name)
        if (instance) instance.crashRate = rate
      }
      for (const instance of processes.values()) supervise(instance)
    },
    stop() {
      isStopped = true
    },
    correctTaints() {
      for (const name of taintedNodes) if (!fencedNodes.has(name)) setTaint(name, false)
      for (const node of nodes.values())
        if (node.isLostForGood) fence(node.name, () => node.isLostForGood && !node.isOn)
    },
  }
}
