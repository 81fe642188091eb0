// Rule `metrics`: every incarnation of every process counted exactly the driver calls whose end it received, and at the end
// the leader's gauges equal the claims and volumes in the store.
import { type CsiCode, goNameOf } from '../../csi/index.ts'
import { SELECTED_NODE } from '../../volumes/names.ts'
import type { System } from '../engine/system.ts'
import type { View } from '../engine/view.ts'
import type { Problem } from './context.ts'

type Counted = Pick<System, 'registries' | 'calls'>
type Things = Pick<View, 'claims' | 'volumes'>

/** Of controllers, and of node agents. */
const CALLS = ['csi_sidecar_operations_seconds', 'csi_operations_seconds']
/** A closed connection cancels calls, which only the caller sees. */
const CANCELED = 'Canceled'
/** Counters of completed work, and the call that must have succeeded at least as often. */
const DONE: readonly (readonly [metric: string, method: string])[] = [
  ['controller_persistentvolumeclaim_provision_total', 'CreateVolume'],
  ['controller_persistentvolume_delete_total', 'DeleteVolume'],
]
const MODIFY = 'ControllerModifyVolume'
const RESERVATIONS = 'stowage_scheduler_capacity_reservations'

interface Sample {
  readonly metricName?: string
  readonly labels: Readonly<Partial<Record<string, string | number>>>
  readonly value: number
}

export async function metricProblems({ registries, calls }: Counted): Promise<Problem[]> {
  const problems: string[] = []
  const received = new Map<string, Map<string, number>>()
  for (const { process, incarnation, method, outcome, endedMs } of calls) {
    if (endedMs === undefined) continue
    const of = `${process} ${incarnation}`
    const counts = received.get(of) ?? new Map<string, number>()
    received.set(of, counts)
    const call = `${method} ${goNameOf(outcome as CsiCode)}`
    counts.set(call, (counts.get(call) ?? 0) + 1)
  }
  for (const { process, incarnation, registry } of registries) {
    const who = `${process} (incarnation ${incarnation})`
    const counts = received.get(`${process} ${incarnation}`) ?? new Map<string, number>()
    const samples = async (name: string): Promise<readonly Sample[]> =>
      ((await registry.getSingleMetric(name)?.get())?.values as readonly Sample[] | undefined) ?? []
    const sum = async (name: string) => (await samples(name)).reduce((total, { value }) => total + value, 0)

    const said = new Map<string, number>()
    for (const name of CALLS) {
      for (const { metricName, labels, value } of await samples(name)) {
        if (metricName !== `${name}_count`) continue
        const call = `${String(labels.method_name).split('/').at(-1)} ${labels.grpc_status_code}`
        said.set(call, (said.get(call) ?? 0) + value)
      }
    }
    for (const call of new Set([...said.keys(), ...counts.keys()])) {
      const [counted, were] = [said.get(call) ?? 0, counts.get(call) ?? 0]
      const isRight = call.endsWith(` ${CANCELED}`) ? counted >= were : counted === were
      if (!isRight) problems.push(`${who} counted ${call} ${counted} times, and received it ${were} times`)
    }
    for (const [metric, method] of DONE) {
      const [done, were] = [await sum(metric), counts.get(`${method} OK`) ?? 0]
      if (done > were) problems.push(`${who} reports ${metric} ${done}, and ${method} succeeded ${were} times`)
    }
    const asked = [...counts].reduce((total, [call, times]) => total + (call.startsWith(`${MODIFY} `) ? times : 0), 0)
    for (const metric of ['controller_modify_volume', 'controller_update_io_provisioning']) {
      const [total, errors] = [await sum(`${metric}_total`), await sum(`${metric}_errors_total`)]
      if (total > asked || errors > total) {
        problems.push(
          `${who} reports ${metric}_total ${total} with ${errors} errors, and called ${MODIFY} ${asked} times`,
        )
      }
    }
    const differences = await sum('stowage_quota_differences_total')
    if (differences > 0) problems.push(`${who} found ${differences} quotas with wrong usage`)
    for (const { name, type, values } of await registry.getMetricsAsJSON()) {
      if (String(type) !== 'gauge') continue
      for (const { value, labels } of values) {
        if (value < 0) problems.push(`${who} reports ${name} ${JSON.stringify(labels)} ${value}, which is negative`)
      }
    }
  }
  return problems.map((text) => ({ rule: 'metrics', text }))
}

/** At rest the scheduler has no capacity reserved, unless a claim waits for its volume on a selected node. */
export async function reservationProblems({ registries }: Pick<Counted, 'registries'>, view: View): Promise<Problem[]> {
  const isWaiting = [...view.claims.values()].some(
    ({ metadata, spec }) => metadata.annotations?.[SELECTED_NODE] && !spec?.volumeName,
  )
  if (isWaiting) return []
  const newest = new Map(registries.map((one) => [one.process, one]))
  const problems: Problem[] = []
  for (const { process, registry } of newest.values()) {
    const { values = [] } = (await registry.getSingleMetric(RESERVATIONS)?.get()) ?? {}
    const held = values.reduce((total, { value }) => total + value, 0)
    if (held > 0) problems.push({ rule: 'capacity', text: `${process} reserves capacity for ${held} volumes at rest` })
  }
  return problems
}

/** To be called at rest. Only the leader counts. */
export async function gaugeProblems(
  { registries }: Pick<Counted, 'registries'>,
  { claims, volumes }: Things,
): Promise<Problem[]> {
  const things = { pv: [...volumes.values()], pvc: [...claims.values()] }
  const isBound = ({ status }: { readonly status?: { readonly phase?: string } }) => status?.phase === 'Bound'
  const truth = {
    total_pv_count: things.pv.length,
    bound_pv_count: things.pv.filter(isBound).length,
    unbound_pv_count: things.pv.filter((one) => !isBound(one)).length,
    bound_pvc_count: things.pvc.filter(isBound).length,
    unbound_pvc_count: things.pvc.filter((one) => !isBound(one)).length,
  }
  const newest = new Map(registries.map((one) => [one.process, one]))
  const counts = await Promise.all(
    [...newest.values()].map(async ({ process, registry }) => {
      const said = new Map<string, number>()
      for (const name of Object.keys(truth)) {
        const { values = [] } = (await registry.getSingleMetric(`pv_collector_${name}`)?.get()) ?? {}
        said.set(
          name,
          values.reduce((total, { value }) => total + value, 0),
        )
      }
      return { process, said }
    }),
  )
  const counting = counts.filter(({ said }) => [...said.values()].some((value) => value > 0))
  const problems = counting.flatMap(({ process, said }) =>
    Object.entries(truth)
      .filter(([name, are]) => said.get(name) !== are)
      .map(([name, are]) => `${process} reports pv_collector_${name} ${said.get(name)}, and there are ${are}`),
  )
  if (counting.length === 0 && things.pv.length + things.pvc.length > 0) {
    problems.push(`no process counts the ${things.pv.length} volumes and ${things.pvc.length} claims`)
  }
  return problems.map((text) => ({ rule: 'metrics', text }))
}
