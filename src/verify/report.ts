// The result of a verification, which the command prints as text, JSON, YAML and JUnit.
import type { LoggedCall } from './calls/call-log.ts'
import type { Check } from './check.ts'
import type { DriverProfile } from './profile.ts'

const CHECK_STATUSES = ['passed', 'violated', 'advice', 'not applicable', 'not run'] as const
/** `advice` is a violation of a rule that the specification only recommends. */
export type CheckStatus = (typeof CHECK_STATUSES)[number]

export interface CheckResult extends Pick<Check, 'id' | 'title' | 'rule'> {
  readonly status: CheckStatus
  /** How the driver violated the rule, or why the check does not apply or did not run. */
  readonly message?: string
  /** The calls before a violation that explain it. */
  readonly calls?: readonly LoggedCall[]
  readonly durationMs: number
}

export interface VerifyReport {
  readonly driver: {
    readonly name: string
    readonly version: string
    readonly plugin: readonly string[]
    readonly expansion: readonly string[]
    readonly controller: readonly string[]
    readonly node: readonly string[]
  }
  readonly seed: number
  readonly checks: readonly CheckResult[]
  readonly counts: Readonly<Record<CheckStatus, number>>
  /** Leftovers that the driver did not remove, with its response, and mounts that it left. */
  readonly leftovers: readonly string[]
  /** Why the verification ended early. */
  readonly stopped?: string
  readonly durationMs: number
}

export const describeProfile = (profile: DriverProfile): VerifyReport['driver'] => ({
  name: profile.name,
  version: profile.version,
  plugin: [...profile.plugin],
  expansion: [...profile.expansion],
  controller: [...profile.controller],
  node: [...profile.node],
})

export function countStatuses(checks: readonly CheckResult[]): VerifyReport['counts'] {
  const count = (status: CheckStatus) => checks.filter((check) => check.status === status).length
  return Object.fromEntries(CHECK_STATUSES.map((status) => [status, count(status)])) as VerifyReport['counts']
}

/** Calls of controllers and agents that do not concern a particular volume. */
const ROUTINE_METHODS: ReadonlySet<string> = new Set([
  'GetPluginInfo',
  'GetPluginCapabilities',
  'Probe',
  'ControllerGetCapabilities',
  'NodeGetCapabilities',
  'NodeGetInfo',
  'GetCapacity',
  'ListVolumes',
])
/** Bounds the calls that are shown for one violation. The last calls are the relevant ones. */
const SHOWN_CALLS_MAX = 12

/** Returns the calls to show for a violation. Routine calls of controllers and agents are omitted if there are others. */
export function selectCallsToShow(calls: readonly LoggedCall[], isThroughControllers: boolean): readonly LoggedCall[] {
  const otherCalls = isThroughControllers ? calls.filter(({ method }) => !ROUTINE_METHODS.has(method)) : calls
  return (otherCalls.length > 0 ? otherCalls : calls).slice(-SHOWN_CALLS_MAX)
}
