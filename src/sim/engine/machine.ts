// A simulated machine that runs a node. The mount records on its disk survive a power cut; its mounts and the driver's staged
// and published volumes do not.
import { applyNodeCall, createMemoryDisk, type MemoryDisk } from '../../nodeagent/disk/memory-disk.ts'
import { clearNode, type SimDriver } from '../environment/driver.ts'
import type { Network } from '../environment/network.ts'
import type { SimProcess } from '../environment/process.ts'
import type { Simulation } from '../environment/simulation.ts'
import { type DriverName, nodeIdOf } from '../plan/catalog.ts'
import { agentOf } from '../plan/process-names.ts'
import type { SystemNode } from './system.ts'

export interface Machine extends SystemNode {
  readonly disk: MemoryDisk
  /** Incremented by each power cut, so that a call that was in progress can be discarded. */
  readonly boots: number
  /** The agent's process, once it is created. */
  agent: SimProcess | undefined
  /** Ends the loss of the node when the plan ends, unless it is lost for good. */
  heal(): void
  /** Applies the effect of a completed driver call on this node. */
  applyCall(driver: DriverName, method: string, request: object): void
}

export function createMachine(
  simulation: Simulation,
  name: string,
  drivers: ReadonlyMap<DriverName, SimDriver>,
  network: Pick<Network, 'cutOffProcesses'>,
  beforeChange: () => void,
): Machine {
  const disk = createMemoryDisk()
  let boots = 1
  let isOn = true
  let isSplit = false
  let isSuspended = false
  let isLostForGood = false
  const machine: Machine = {
    name,
    disk,
    agent: undefined,
    get boots() {
      return boots
    },
    get isOn() {
      return isOn
    },
    get isRunning() {
      return isOn && !isSuspended
    },
    get isReachable() {
      return isOn && !isSuspended && !isSplit
    },
    get isLostForGood() {
      return isLostForGood
    },
    applyCall: (_driver, method, request) => applyNodeCall(disk, method, request as never),
    mounts() {
      const volumes = new Map<string, string>()
      for (const [driver, { state }] of drivers) {
        for (const { id, onNodes } of Object.values(state().volumes)) {
          const { staged = {}, published = {} } = onNodes[nodeIdOf(name)] ?? {}
          for (const path of [...Object.keys(staged), ...Object.keys(published)]) volumes.set(path, `${driver}^${id}`)
        }
      }
      return [...disk.mountPoints].map((path) => ({ path, volume: volumes.get(path) }))
    },
    cutPower() {
      if (!isOn) return
      beforeChange()
      network.cutOffProcesses.delete(agentOf(name))
      isSplit = false
      isSuspended = false
      isOn = false
      boots++
      simulation.tally('power cut')
      simulation.note(`${name} loses power`)
      machine.agent?.crash()
      disk.reboot()
      for (const { state } of drivers.values()) clearNode(state(), nodeIdOf(name))
    },
    boot() {
      if (isOn) return
      beforeChange()
      isOn = true
      isLostForGood = false
      simulation.note(`${name} boots`)
      machine.agent?.start()
    },
    split() {
      if (!isOn || isSplit || isSuspended) return
      isSplit = true
      simulation.tally('node split')
      simulation.note(`${name} is cut off from the server`)
      network.cutOffProcesses.add(agentOf(name))
    },
    rejoin() {
      if (!isSplit) return
      isSplit = false
      simulation.note(`${name} reaches the server again`)
      network.cutOffProcesses.delete(agentOf(name))
    },
    suspend(ms) {
      if (!isOn || isSplit || isSuspended) return
      beforeChange()
      isSuspended = true
      simulation.tally('node suspended')
      simulation.note(`${name} is suspended`)
      machine.agent?.freeze(ms)
    },
    resume() {
      if (!isSuspended) return
      beforeChange()
      isSuspended = false
      simulation.note(`${name} is resumed`)
      machine.agent?.thaw()
      machine.agent?.start()
    },
    loseForGood() {
      machine.cutPower()
      isLostForGood = true
    },
    heal() {
      if (isLostForGood) return
      machine.rejoin()
      machine.resume()
      machine.boot()
    },
  }
  return machine
}
