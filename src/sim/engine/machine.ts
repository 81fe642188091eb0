// A simulated machine that runs a node. The mount records on its disk survive a power cut; its mounts and the driver's staged
// and published volumes do not.
import { applyNodeCall, createMemoryDisk, type MemoryDisk } from '../../nodeagent/disk/memory-disk.ts'
import { clearNode, type SimDriver } from '../environment/driver.ts'
import type { SimProcess } from '../environment/process.ts'
import type { Simulation } from '../environment/simulation.ts'
import { type DriverName, nodeIdOf } from '../plan/catalog.ts'
import type { SystemNode } from './system.ts'

export interface Machine extends SystemNode {
  readonly disk: MemoryDisk
  /** Incremented by each power cut, so that a call that was in progress can be discarded. */
  readonly boots: number
  /** The agent's process, once it is created. */
  agent: SimProcess | undefined
  /** Applies the effect of a completed driver call on this node. */
  applyCall(driver: DriverName, method: string, request: object): void
}

export function createMachine(
  simulation: Simulation,
  name: string,
  drivers: ReadonlyMap<DriverName, SimDriver>,
): Machine {
  const disk = createMemoryDisk()
  let boots = 1
  let isOn = true
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
      isOn = true
      simulation.note(`${name} boots`)
      machine.agent?.start()
    },
  }
  return machine
}
