// The Check type: a rule of the CSI specification as data, and a function that tests it. catalogue.ts lists the checks;
// verify-driver.ts runs them.
import type { Random } from '../base/clock.ts'
import type { NodeGetInfoResponse } from '../csi/gen/csi_pb.js'
import type { ControllerCapability, CsiDriver, NodeCapability, PluginService } from '../csi/index.ts'
import type { Bench, BenchOptions } from './bench/bench.ts'
import type { DriverProfile } from './profile.ts'
import type { VerifySettings } from './settings.ts'

export interface Check {
  /** Stable, because users select checks by their id. */
  readonly id: string
  readonly title: string
  readonly rule: Rule
  readonly needs?: Needs
  /** Throws Violation if the driver breaks the rule. */
  run(context: CheckContext): Promise<void>
}

interface Rule {
  /** The section of the CSI specification. */
  readonly section: string
  /** The rule, paraphrased. */
  readonly text: string
  /** `must` violations fail the verification; `should` violations are advice. */
  readonly level: 'must' | 'should'
}

/** What a check requires of the driver and the settings. */
export interface Needs {
  /** Capabilities of the controller service. An empty list requires the service only. */
  readonly controller?: readonly ControllerCapability[]
  /** Capabilities of the node service. An empty list requires the service only. */
  readonly node?: readonly NodeCapability[]
  readonly plugin?: readonly PluginService[]
  /** Whether verify must be able to kill and start the driver. */
  readonly restart?: boolean
  /** Whether a second node's id is required. */
  readonly otherNode?: boolean
  /** Whether parameters for ControllerModifyVolume are required. */
  readonly attributes?: boolean
  /** Whether the check runs the controllers and the agent, which reject a driver with an invalid name. */
  readonly bench?: boolean
  /** Whether the driver can expand only volumes that are not in use. */
  readonly onlyOfflineExpansion?: boolean
}

export interface CheckContext {
  readonly profile: DriverProfile
  readonly nodeInfo: NodeGetInfoResponse | undefined
  readonly settings: VerifySettings
  /** Calls the driver directly. Every call is recorded, and everything it creates is removed after the check. */
  readonly csi: CsiDriver
  readonly random: Random
  readonly signal: AbortSignal
  /** Returns a name that is unique across checks and runs. */
  uniqueName(): string
  /** Creates a directory for staging and publishing. */
  makeDirectory(): Promise<string>
  /** Waits in real time. */
  pause(ms: number): Promise<void>
  /** Starts the API server, the controllers and the node agent with this driver. */
  startBench(options?: BenchOptions): Promise<Bench>
  /** Describes everything that calls of this check have created in the driver and that still exists. */
  leftovers(): readonly string[]
  /** Whether a volume may still be staged or published on this node. */
  hasNodeVolumes(): boolean
  /** Kills and restarts the driver. Present if verify started it. */
  readonly driverProcess: DriverControl | undefined
}

export interface DriverControl {
  kill(): Promise<void>
  /** Resolves when the driver responds. */
  start(): Promise<void>
}

/** The driver violated the check's rule. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

export function violate(message: string): never {
  throw new Violation(message)
}

/** Thrown by a check that finds, after it has started, that it does not apply to this driver. */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable'
}
