// Rule `metrics`: each incarnation of a process counted the driver calls whose result it received, counted no more completed
// provisionings, deletions and modifications than it had calls for, found no quota with a wrong usage, and has no negative
// gauge. At rest, the gauges of the leader equal the claims and volumes in the store. Rule `capacity`: at rest, the scheduler
// reserves no capacity.
import { type CsiCode, goNameOf } from '../../csi/index.ts'
import { SELECTED_NODE } from '../../volumes/names.ts'
import type { System } from '../engine/system.ts'
import type { View } from '../engine/view.ts'
import type { Problem } from './context.ts'

type CallsAndRegistries = Pick<System, 'registries' | 'calls'>
type ClaimsAndVolumes = Pick<View, 'claims' | 'volumes'>

/** Histograms of driver calls: of controllers, and of node agents. */
const CALL_METRICS = ['csi_sidecar_operations_seconds', 'csi_operations_seconds']
/** A closed connection cancels calls, which only the caller observes. */
const CANCELED = 'Canceled'
/** Counters of completed work, and the call that must have succeeded at least as often. */
const COMPLETED_WORK: readonly (readonly [metric: string, method: string])[] = [
  ['controller_persistentvolumeclaim_provision_total', 'CreateVolume'],
  ['controller_persistentvolume_delete_total', 'DeleteVolume'],
]
const MODIFY_METHOD = 'ControllerModifyVolume'
const PLUGIN_CLASS = 'memory'
const RESERVATIONS = 'stowage_scheduler_capacity_reservations'

interface Sample {
  readonly metricName?: string
  readonly labels: Readonly<Partial<Record<string, string | number>>>
  readonly value: number
}

export async function findMetricProblems({ registries, calls }: CallsAndRegistries): Promise<Problem[]> {
  const problems: string[] = []
  const receivedCounts = new Map<string, Map<string, number>>()
  for (const { process, incarnation, method, outcome, endMs } of calls) {
    if (endMs === undefined) continue
    const incarnationKey = `${process} ${incarnation}`
    const counts = receivedCounts.get(incarnationKey) ?? new Map<string, number>()
    receivedCounts.set(incarnationKey, counts)
    const call = `${method} ${goNameOf(outcome as CsiCode)}`
    counts.set(call, (counts.get(call) ?? 0) + 1)
  }
  for (const { process, incarnation, registry } of registries) {
    const processText = `${process} (incarnation ${incarnation})`
    const counts = receivedCounts.get(`${process} ${incarnation}`) ?? new Map<string, number>()
    const samples = async (name: string): Promise<readonly Sample[]> =>
      ((await registry.getSingleMetric(name)?.get())?.values as readonly Sample[] | undefined) ?? []
    const sum = async (name: string) =>
      (await samples(name))
        .filter(({ labels }) => labels.class !== PLUGIN_CLASS) // the plugin is not a driver
        .reduce((total, { value }) => total + value, 0)

    const reportedCounts = new Map<string, number>()
    for (const name of CALL_METRICS) {
      for (const { metricName, labels, value } of await samples(name)) {
        if (metricName !== `${name}_count`) continue
        const call = `${String(labels.method_name).split('/').at(-1)} ${labels.grpc_status_code}`
        reportedCounts.set(call, (reportedCounts.get(call) ?? 0) + value)
      }
    }
    for (const call of new Set([...reportedCounts.keys(), ...counts.keys()])) {
      const [reportedCount, receivedCount] = [reportedCounts.get(call) ?? 0, counts.get(call) ?? 0]
      const isExpected = call.endsWith(` ${CANCELED}`)
        ? reportedCount >= receivedCount
        : reportedCount === receivedCount
      if (!isExpected)
        problems.push(
          `${processText} counted ${call} ${reportedCount} times, but received this result ${receivedCount} times`,
        )
    }
    for (const [metric, method] of COMPLETED_WORK) {
      const [completedCount, successCount] = [await sum(metric), counts.get(`${method} OK`) ?? 0]
      if (completedCount > successCount)
        problems.push(
          `${processText} reports ${metric} ${completedCount}, but ${method} succeeded ${successCount} times`,
        )
    }
    const modifyCalls = [...counts].reduce(
      (total, [call, times]) => total + (call.startsWith(`${MODIFY_METHOD} `) ? times : 0),
      0,
    )
    for (const metric of ['controller_modify_volume', 'controller_update_io_provisioning']) {
      const [total, errors] = [await sum(`${metric}_total`), await sum(`${metric}_errors_total`)]
      if (total > modifyCalls || errors > total) {
        problems.push(
          `${processText} reports ${metric}_total ${total} with ${errors} errors, but called ${MODIFY_METHOD} ${modifyCalls} times`,
        )
      }
    }
    const differences = await sum('stowage_quota_differences_total')
    if (differences > 0) problems.push(`${processText} found ${differences} quotas with wrong usage`)
    for (const { name, type, values } of await registry.getMetricsAsJSON()) {
      if (String(type) !== 'gauge') continue
      for (const { value, labels } of values) {
        if (value < 0)
          problems.push(`${processText} reports ${name} ${JSON.stringify(labels)} ${value}, which is negative`)
      }
    }
  }
  return problems.map((text) => ({ rule: 'metrics', text }))
}

/** Checks that the scheduler reserves no capacity at rest, unless a claim waits for its volume on a selected node. */
export async function findReservationProblems(
  { registries }: Pick<CallsAndRegistries, 'registries'>,
  view: View,
): Promise<Problem[]> {
  const isWaiting = [...view.claims.values()].some(
    ({ metadata, spec }) => metadata.annotations?.[SELECTED_NODE] && !spec?.volumeName,
  )
  if (isWaiting) return []
  const newestRegistries = new Map(registries.map((entry) => [entry.process, entry]))
  const problems: Problem[] = []
  for (const { process, registry } of newestRegistries.values()) {
    const { values = [] } = (await registry.getSingleMetric(RESERVATIONS)?.get()) ?? {}
    const reservedCount = values.reduce((total, { value }) => total + value, 0)
    if (reservedCount > 0)
      problems.push({ rule: 'capacity', text: `${process} reserves capacity for ${reservedCount} volumes at rest` })
  }
  return problems
}

/** Compares the leader's gauges with the store. Call it at rest. Processes that do not lead count nothing. */
export async function findGaugeProblems(
  { registries }: Pick<CallsAndRegistries, 'registries'>,
  { claims, volumes }: ClaimsAndVolumes,
): Promise<Problem[]> {
  const objects = { pv: [...volumes.values()], pvc: [...claims.values()] }
  const isBound = ({ status }: { readonly status?: { readonly phase?: string } }) => status?.phase === 'Bound'
  const expectedCounts = {
    total_pv_count: objects.pv.length,
    bound_pv_count: objects.pv.filter(isBound).length,
    unbound_pv_count: objects.pv.filter((volume) => !isBound(volume)).length,
    bound_pvc_count: objects.pvc.filter(isBound).length,
    unbound_pvc_count: objects.pvc.filter((claim) => !isBound(claim)).length,
  }
  const newestRegistries = new Map(registries.map((entry) => [entry.process, entry]))
  const counts = await Promise.all(
    [...newestRegistries.values()].map(async ({ process, registry }) => {
      const reportedCounts = new Map<string, number>()
      for (const name of Object.keys(expectedCounts)) {
        const { values = [] } = (await registry.getSingleMetric(`pv_collector_${name}`)?.get()) ?? {}
        reportedCounts.set(
          name,
          values.reduce((total, { value }) => total + value, 0),
        )
      }
      return { process, reportedCounts }
    }),
  )
  const leaders = counts.filter(({ reportedCounts }) => [...reportedCounts.values()].some((value) => value > 0))
  const problems = leaders.flatMap(({ process, reportedCounts }) =>
    Object.entries(expectedCounts)
      .filter(([name, expectedCount]) => reportedCounts.get(name) !== expectedCount)
      .map(
        ([name, expectedCount]) =>
          `${process} reports pv_collector_${name} ${reportedCounts.get(name)}, but there are ${expectedCount}`,
      ),
  )
  if (leaders.length === 0 && objects.pv.length + objects.pvc.length > 0) {
    problems.push(`no process counts the ${objects.pv.length} volumes and ${objects.pvc.length} claims`)
  }
  return problems.map((text) => ({ rule: 'metrics', text }))
}
