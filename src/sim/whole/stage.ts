// The whole system on one stage: the production server, controllers, scheduler and node agents as processes of a world,
// and several CSI drivers, all of which can be broken and healed. Nothing here judges.
import type { Registry } from 'prom-client'
import type { Client } from '../../client/index.ts'
import type { Cluster } from '../cluster.ts'
import type { SimDriver } from '../driver.ts'
import type { SimProcess } from '../process.ts'
import type { DriverName } from './universe.ts'

export interface Stage {
  readonly cluster: Cluster
  readonly drivers: ReadonlyMap<DriverName, SimDriver>
  readonly nodes: ReadonlyMap<string, StageNode>
  /** By name: `server`, `control-1`, `agent-n1`, `driver net.sim`, `provisioner-net.sim-1` … */
  readonly processes: ReadonlyMap<string, SimProcess>
  /** Every registry of metrics there ever was, with the process whose life it measured. */
  readonly registries: readonly { readonly process: string; readonly life: number; readonly registry: Registry }[]
  /** Every driver call as its caller saw it: how many each life of a process began and heard the end of. */
  readonly calls: readonly StageCall[]
  /** Told of each driver call when it begins and when its caller hears of its end. */
  onCall(listener: (call: StageCall, phase: 'begins' | 'ends') => void): void
  /** Ends all faults, brings everything back, and waits until the server answers. */
  heal(): Promise<void>
}

export interface StageOptions {
  /** How each life of a process sees the server, for checkers that must know what it read. */
  readonly aroundClient?: (process: string, client: Client) => Client
}

export interface StageNode {
  readonly name: string
  readonly isOn: boolean
  /** Paths at which something is mounted now, and the volume (`driver^handle`) where that is known. */
  mounts(): readonly { readonly path: string; readonly volume: string | undefined }[]
  cutPower(): void
  boot(): void
}

export interface StageCall {
  readonly process: string
  readonly life: number
  readonly driver: DriverName
  readonly method: string
  readonly volume: string
  readonly beganMs: number
  readonly endedMs: number | undefined
  /** `OK` or the code, as the caller heard it. */
  readonly outcome: string | undefined
}
