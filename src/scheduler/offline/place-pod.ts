// Places pods one after the other by running the scheduling cycle: filter, score, assume, reserve. The caller replaces the API
// server and the controllers: it applies each placement to the caches before the next pod is placed.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { ObjectKey } from '../../client/index.ts'
import type { NodeInfo } from '../cluster/node-info.ts'
import { podInfoOf } from '../cluster/pod-info.ts'
import { decide } from '../decide-placement.ts'
import type { EventName } from '../framework/cluster-events.ts'
import type { ReservedVolume } from '../framework/plugin.ts'
import type { Rejection } from '../queue/unschedulable-pods.ts'
import { evaluatePod, type PodEvaluation } from './evaluate-pod.ts'
import { createOfflinePlugins, type OfflineOptions } from './offline-plugins.ts'

type PodPlacement =
  | { readonly is: 'placed'; readonly nodeName: string; readonly volumes: readonly ReservedVolume[] }
  /** `message` is what the scheduler would report in its event. */
  | { readonly is: 'rejected'; readonly message: string }

type PlacedPod = Extract<PodPlacement, { is: 'placed' }>

export interface PodPlacer {
  place(pod: Readonly<Pod>): PodPlacement
  /** Evaluates a pod on every node, after the placements so far. */
  evaluate(pod: Readonly<Pod>): PodEvaluation
  /** The nodes with the pods placed so far. */
  readonly nodes: readonly NodeInfo[]
  /** Returns the bytes that are free according to each capacity report, after the placements so far. */
  freeCapacity(): ReadonlyMap<ObjectKey, bigint>
}

interface PlacerOptions extends OfflineOptions {
  /** Updates the caches as the API server and the controllers do: binds the pod's claims, then the pod. */
  applyPlacement(pod: Readonly<Pod>, placement: PlacedPod): void
}

/** Changes after which a rejected pod may fit. Placements are not among them, because they only consume resources. */
const HELPFUL_EVENTS: ReadonlySet<EventName> = new Set([
  'node',
  'csiNode',
  'csiDriver',
  'storageClass',
  'storageCapacity',
])

export function createPodPlacer({ applyPlacement, ...options }: PlacerOptions): PodPlacer {
  const rejections = new Map<string, Rejection>()
  const { plugins, cluster } = createOfflinePlugins({
    ...options,
    onEvent(event) {
      if (HELPFUL_EVENTS.has(event.on)) rejections.clear()
    },
  })
  const deps = { plugins, cluster, random: options.random, rotation: { startAt: 0 } }
  const rejectionCache = {
    get size() {
      return rejections.size
    },
    cachedRejection: (signature: string) => rejections.get(signature),
  }
  return {
    place(pod) {
      const info = podInfoOf(pod)
      const decision = decide(info, deps, rejectionCache)
      if (decision.do === 'wait') {
        const { message, signature } = decision.rejection
        if (signature !== undefined) rejections.set(signature, decision.rejection)
        return { is: 'rejected', message }
      }
      const { node, active } = decision
      cluster.assume(info, node.name)
      for (const { plugin, state } of active) plugin.reserve?.(state, node)
      const volumes = active.flatMap(({ plugin, state }) => plugin.reservedVolumes?.(state) ?? [])
      const placement: PlacedPod = { is: 'placed', nodeName: node.name, volumes }
      applyPlacement(pod, placement)
      for (const { plugin, state } of active) plugin.postBind?.(state, node)
      return placement
    },
    evaluate: (pod) => evaluatePod(pod, plugins, cluster),
    get nodes() {
      return cluster.nodes
    },
    freeCapacity: () => new Map(plugins.flatMap((plugin) => [...(plugin.freeCapacity?.() ?? [])])),
  }
}
