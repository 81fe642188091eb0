// Collects the facts about each CSI driver: capabilities, classes, nodes, volumes without a claim, and calls.
import type { CsiCallSample, HistorySample } from '../../protocol.ts'
import type { CsiNodeRow, DriverRow } from '../rows/cluster.ts'
import type { ClassRow, VolumeRow } from '../rows/storage.ts'

interface CallTotal {
  readonly method: string
  /** Mean calls per second by gRPC code. */
  readonly codes: readonly { readonly code: string; readonly perSecond: number }[]
  readonly perSecond: number
  readonly failedPerSecond: number
  /** The maximum of all samples. Undefined if there were no calls. */
  readonly p50Ms: number | undefined
  readonly p99Ms: number | undefined
}

export interface DriverView {
  readonly name: string
  /** Undefined if the driver has no CSIDriver object. */
  readonly driver: DriverRow | undefined
  readonly classes: readonly ClassRow[]
  readonly nodes: readonly string[]
  /** Released or failed volumes: their storage exists, but no claim uses it. */
  readonly unclaimed: readonly VolumeRow[]
  readonly volumes: number
}

interface DriverSources {
  readonly drivers: Iterable<DriverRow>
  readonly classes: Iterable<ClassRow>
  readonly csiNodes: Iterable<CsiNodeRow>
  readonly volumes: Iterable<VolumeRow>
}

/** Returns every driver that has a CSIDriver object, a class, a node or a volume. */
export function buildDriverViews({ drivers, classes, csiNodes, volumes }: DriverSources): DriverView[] {
  type Draft = {
    driver: DriverRow | undefined
    classes: ClassRow[]
    nodes: string[]
    unclaimed: VolumeRow[]
    volumes: number
  }
  const views = new Map<string, Draft>()
  const viewOf = (name: string): Draft => {
    let view = views.get(name)
    if (!view) {
      view = { driver: undefined, classes: [], nodes: [], unclaimed: [], volumes: 0 }
      views.set(name, view)
    }
    return view
  }
  for (const driver of drivers) viewOf(driver.name).driver = driver
  for (const row of classes) viewOf(row.driver).classes.push(row)
  for (const { name, drivers: registered } of csiNodes)
    for (const driver of registered) viewOf(driver.name).nodes.push(name)
  for (const volume of volumes) {
    if (volume.driver === undefined) continue
    const view = viewOf(volume.driver)
    view.volumes++
    if (volume.phase === 'Released' || volume.phase === 'Failed') view.unclaimed.push(volume)
  }
  return [...views].map(([name, view]) => ({ name, ...view })).sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Returns the calls of the driver by method over all samples, the busiest first; undefined if calls are not sampled. */
export function sumCalls(samples: readonly HistorySample[], driver: string): CallTotal[] | undefined {
  const sampled = samples.flatMap(({ csiCalls }) => (csiCalls === null ? [] : [csiCalls]))
  if (sampled.length === 0) return undefined
  const methods = new Map<string, CsiCallSample[]>()
  for (const call of sampled.flat()) {
    if (call.driver !== driver) continue
    methods.set(call.method, [...(methods.get(call.method) ?? []), call])
  }
  return [...methods]
    .map(([method, calls]) => {
      const codes = [...new Set(calls.map(({ code }) => code))].map((code) => ({
        code,
        perSecond: meanRate(
          calls.filter((call) => call.code === code),
          sampled.length,
        ),
      }))
      return {
        method,
        codes: codes.sort((a, b) => b.perSecond - a.perSecond),
        perSecond: meanRate(calls, sampled.length),
        failedPerSecond: meanRate(
          calls.filter(({ code }) => code !== 'OK'),
          sampled.length,
        ),
        p50Ms: largest(calls.map(({ p50Ms }) => p50Ms)),
        p99Ms: largest(calls.map(({ p99Ms }) => p99Ms)),
      }
    })
    .sort((a, b) => b.perSecond - a.perSecond)
}

/** A sample without a call of this kind counts as zero. */
const meanRate = (calls: readonly CsiCallSample[], samples: number): number =>
  calls.reduce((sum, { perSecond }) => sum + perSecond, 0) / samples

function largest(values: readonly (number | null)[]): number | undefined {
  const known = values.filter((value): value is number => value !== null)
  return known.length === 0 ? undefined : Math.max(...known)
}

/** Returns the calls per second in each sample; null where calls are not sampled. */
export const listCallRates = (
  samples: readonly HistorySample[],
  driver: string,
  isCounted: (call: CsiCallSample) => boolean,
) =>
  samples.map(({ csiCalls }) =>
    csiCalls === null
      ? null
      : csiCalls.reduce((sum, call) => (call.driver === driver && isCounted(call) ? sum + call.perSecond : sum), 0),
  )
