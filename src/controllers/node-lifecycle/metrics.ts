// The metrics of the node lifecycle controllers, under their Kubernetes names. Gauges are computed from the cache when
// they are scraped.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { isReady } from './conditions.ts'
import type { NodeLifecycleContext } from './context.ts'
import { LOST_NODE_CONDITIONS, phaseOf } from './lost-nodes/plan-lost-node.ts'
import type { RemovalReason } from './remove-pod.ts'

export interface NodeLifecycleMetrics {
  observeCheck(seconds: number): void
  /** Counts a node that became not ready or unreachable. Its pods will be evicted. */
  countNotReadyNode(node: Readonly<Node>): void
  countEviction(overdueSeconds: number): void
  countRemoval(namespace: string, reason: RemovalReason): void
  countRemovalError(namespace: string, reason: RemovalReason): void
  /** Computes the gauges from this context until the returned function is called. */
  collectFrom(context: Pick<NodeLifecycleContext, 'nodes'>): () => void
}

const CHECK_SECONDS = [0.001, 0.004, 0.016, 0.064, 0.256, 1.024, 4.096, 16.384]
const EVICTION_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240]

/** Must be called at most once per registry. */
export function createNodeLifecycleMetrics(registry: Registry): NodeLifecycleMetrics {
  const registers = [registry]
  let context: Pick<NodeLifecycleContext, 'nodes'> | undefined
  const zoneOptions = { labelNames: ['zone'] as const, registers }
  const removalOptions = { labelNames: ['namespace', 'reason'] as const, registers }

  const addZoneGauge = (name: string, help: string, value: (total: number, ready: number) => number) =>
    new Gauge({
      name,
      help,
      ...zoneOptions,
      collect() {
        this.reset()
        for (const [zone, { total, ready }] of zonesOf(context?.nodes.list() ?? [])) {
          this.set({ zone }, value(total, ready))
        }
      },
    })
  addZoneGauge('node_collector_zone_size', 'Nodes, by zone.', (total) => total)
  addZoneGauge(
    'node_collector_zone_health',
    'Percentage of nodes that are ready, by zone.',
    (total, ready) => (100 * ready) / total,
  )
  addZoneGauge(
    'node_collector_unhealthy_nodes_in_zone',
    'Nodes that are not ready, by zone.',
    (total, ready) => total - ready,
  )

  new Gauge({
    name: 'stowage_lost_nodes',
    help: 'Nodes that are unreachable, fenced, lost, cleaned or in quarantine, by phase.',
    labelNames: ['phase'] as const,
    registers,
    collect() {
      this.reset()
      for (const phase of LOST_NODE_CONDITIONS) this.set({ phase }, 0)
      for (const node of context?.nodes.list() ?? []) {
        const phase = phaseOf(node)
        if (phase !== 'InService') this.inc({ phase })
      }
    },
  })

  const notReadyNodes = new Counter({
    name: 'node_collector_evictions_total',
    help: 'Nodes that became not ready or unreachable, so that their pods are evicted.',
    ...zoneOptions,
  })
  const checkSeconds = new Histogram({
    name: 'node_collector_update_node_health_duration_seconds',
    help: 'Duration of one node health check.',
    buckets: CHECK_SECONDS,
    registers,
  })
  const evictions = new Counter({
    name: 'taint_eviction_controller_pod_deletions_total',
    help: 'Pods deleted because they did not tolerate a taint of their node.',
    registers,
  })
  const evictionSeconds = new Histogram({
    name: 'taint_eviction_controller_pod_deletion_duration_seconds',
    help: 'Time from the due time of an eviction to the deletion of the pod.',
    buckets: EVICTION_SECONDS,
    registers,
  })
  const removals = new Counter({
    name: 'pod_gc_collector_force_delete_pods_total',
    help: 'Pods deleted without waiting for their node.',
    ...removalOptions,
  })
  const removalErrors = new Counter({
    name: 'pod_gc_collector_force_delete_pod_errors_total',
    help: 'Failed deletions of pods without waiting for their node.',
    ...removalOptions,
  })
  return {
    observeCheck: (seconds) => checkSeconds.observe(seconds),
    countNotReadyNode: (node) => notReadyNodes.inc({ zone: zoneOf(node) }),
    countEviction(overdueSeconds) {
      evictions.inc()
      evictionSeconds.observe(overdueSeconds)
    },
    countRemoval: (namespace, reason) => removals.inc({ namespace, reason }),
    countRemovalError: (namespace, reason) => removalErrors.inc({ namespace, reason }),
    collectFrom(newContext) {
      context = newContext
      return () => {
        if (context === newContext) context = undefined
      }
    },
  }
}

function zonesOf(nodes: readonly Readonly<Node>[]): Map<string, { total: number; ready: number }> {
  const zones = new Map<string, { total: number; ready: number }>()
  for (const node of nodes) {
    const zone = zones.get(zoneOf(node)) ?? { total: 0, ready: 0 }
    zones.set(zoneOf(node), zone)
    zone.total++
    if (isReady(node)) zone.ready++
  }
  return zones
}

/** Returns the zone label as Kubernetes formats it: the region, a separator that no name contains, and the zone. */
function zoneOf({ metadata: { labels = {} } }: Readonly<Node>): string {
  const labelOf = (level: 'region' | 'zone') =>
    labels[`topology.kubernetes.io/${level}`] ?? labels[`failure-domain.beta.kubernetes.io/${level}`] ?? ''
  const region = labelOf('region')
  const zone = labelOf('zone')
  return region || zone ? `${region}:\x00:${zone}` : ''
}
