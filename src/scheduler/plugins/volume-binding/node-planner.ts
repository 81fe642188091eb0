// Plans a pod's claims for one node: which existing volumes they bind to, which are provisioned, or why neither works.
// Created once per pod, called for every node.

import type { TopologySelectorTerm } from '../../../api/kinds/shared/references-schema.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import { chooseVolume } from '../../../volumes/choose-volume.ts'
import { type ClaimRequirements, requirementsOf, type Volume } from '../../../volumes/matching.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import { type Reason, type Status, unschedulable } from '../../framework/status.ts'
import { getOrCreate } from '../../get-or-create.ts'
import type { AssumedVolumes } from './assumed-volumes.ts'
import type { AvailableVolumes } from './available-volumes.ts'
import type { CapacityReport } from './capacity/capacity-report.ts'
import { type CapacityDeps, type Fit, VolumeFitter, type VolumeRequest } from './capacity/fit-volumes.ts'
import type { BoundClaim, DelayedClaim } from './pod-volumes.ts'
import { BIND_CONFLICT, NODE_CONFLICT, NOT_ENOUGH_SPACE, VOLUME_NOT_FOUND } from './reasons.ts'

export interface NodePlan {
  readonly bind: readonly { readonly claim: DelayedClaim; readonly volume: Volume }[]
  /** `report` is undefined if the driver does not track capacity. */
  readonly provision: readonly { readonly claim: DelayedClaim; readonly report: CapacityReport | undefined }[]
  /** Claims that another pod is already having bound on this node. */
  readonly shared: readonly DelayedClaim[]
}

export interface PlannerDeps {
  readonly available: AvailableVolumes
  readonly assumed: AssumedVolumes
  readonly capacity: CapacityDeps
  /** Whether the driver reports capacity and its CSIDriver has storageCapacity set. */
  readonly tracksCapacity: (driver: string) => boolean
}

interface PlannedClaim {
  readonly claim: DelayedClaim
  readonly requirements: ClaimRequirements
  /** Whether an existing volume may match; most often none does. */
  readonly mayMatchVolume: boolean
  readonly canBeProvisioned: boolean
  readonly isAllowed: (labels: Readonly<Record<string, string>>) => boolean
}

const EMPTY_PLAN: NodePlan = { bind: [], provision: [], shared: [] }
const REJECTED = new Map([BIND_CONFLICT, NOT_ENOUGH_SPACE].map((reason) => [reason, unschedulable(reason)]))

export class NodePlanner {
  readonly #deps: PlannerDeps
  readonly #bound: readonly BoundClaim[]
  readonly #delayed: readonly PlannedClaim[]
  readonly #plans = new Map<NodeInfo, NodePlan>()
  /** Every claim needs a new volume on every node: the usual case, with less to check per node. */
  readonly #areAllNew: boolean
  readonly #fits = new Map<NodeInfo, Fit>()
  readonly #fitter: VolumeFitter
  readonly #tracked: ReadonlySet<DelayedClaim>
  readonly #fitters = new Map<string, VolumeFitter>()

  constructor(deps: PlannerDeps, bound: readonly BoundClaim[], delayed: readonly DelayedClaim[]) {
    this.#deps = deps
    this.#bound = bound
    this.#delayed = delayed.map((claim) => plannedClaim(claim, deps.available))
    const tracked = delayed.filter((claim) => claim.bytes > 0n && deps.tracksCapacity(claim.storageClass.provisioner))
    this.#tracked = new Set(tracked)
    this.#fitter = new VolumeFitter(deps.capacity, tracked.map(requestOf))
    this.#areAllNew = this.#delayed.every(
      ({ claim, mayMatchVolume }) =>
        !mayMatchVolume && claim.selectedNode === undefined && !deps.assumed.bindingOf(claim.key),
    )
  }

  /** The plan for a node that passed `filter`. */
  planFor(node: NodeInfo): NodePlan {
    const plan = this.#plans.get(node)
    if (plan) return plan
    const fit = this.#fits.get(node)
    return fit ? { bind: [], provision: this.#provisions(this.#delayed, fit), shared: [] } : EMPTY_PLAN
  }

  /** How much capacity is missing, after nodes have been rejected. */
  shortage(): string | undefined {
    for (const fitter of [this.#fitter, ...this.#fitters.values()]) {
      const shortage = fitter.shortage()
      if (shortage !== undefined) return shortage
    }
    return undefined
  }

  filter(node: NodeInfo): Status | undefined {
    const forBound = this.#checkBound(node)
    const forDelayed = this.#areAllNew ? this.#planNew(node) : this.#planDelayed(node)
    if (!forBound) return forDelayed && REJECTED.get(forDelayed)
    const reasons: Reason[] = []
    if (forBound.isElsewhere) reasons.push(NODE_CONFLICT)
    if (forDelayed) reasons.push(forDelayed)
    if (forBound.isMissing) reasons.push(VOLUME_NOT_FOUND)
    return unschedulable(...reasons)
  }

  #checkBound(node: NodeInfo): { isElsewhere: boolean; isMissing: boolean } | undefined {
    let isElsewhere = false
    let isMissing = false
    for (const { volume } of this.#bound) {
      if (!volume) isMissing = true
      else if (!isReachableFrom(volume, node)) isElsewhere = true
    }
    return isElsewhere || isMissing ? { isElsewhere, isMissing } : undefined
  }

  #planNew(node: NodeInfo): Reason | undefined {
    for (const { canBeProvisioned, isAllowed } of this.#delayed) {
      if (!canBeProvisioned || !isAllowed(node.labels)) return BIND_CONFLICT
    }
    const fit = this.#fitter.fit(node.labels)
    if (!fit) return NOT_ENOUGH_SPACE
    this.#fits.set(node, fit)
    return undefined
  }

  #planDelayed(node: NodeInfo): Reason | undefined {
    const bind: { claim: DelayedClaim; volume: Volume }[] = []
    const toProvision: PlannedClaim[] = []
    const shared: DelayedClaim[] = []
    let excluded: Set<string> | undefined
    for (const planned of this.#delayed) {
      const { claim } = planned
      const assumed = this.#deps.assumed.bindingOf(claim.key)
      if (assumed) {
        if (assumed.nodeName !== node.name) return BIND_CONFLICT
        shared.push(claim)
      } else if (claim.selectedNode !== undefined) {
        if (claim.selectedNode !== node.name) return BIND_CONFLICT
        toProvision.push(planned)
      } else {
        const volume = planned.mayMatchVolume ? this.#choose(planned, node, excluded) : undefined
        if (volume) {
          bind.push({ claim, volume })
          excluded ??= new Set(this.#deps.assumed.volumes)
          excluded.add(volume.metadata.name ?? '')
        } else toProvision.push(planned)
      }
    }
    for (const { canBeProvisioned, isAllowed } of toProvision) {
      if (!canBeProvisioned || !isAllowed(node.labels)) return BIND_CONFLICT
    }
    const provision = this.#fit(toProvision, node)
    if (!provision) return NOT_ENOUGH_SPACE
    this.#plans.set(node, { bind, provision, shared })
    return undefined
  }

  #choose(
    { claim, requirements }: PlannedClaim,
    node: NodeInfo,
    excluded: ReadonlySet<string> = this.#deps.assumed.volumes,
  ) {
    return chooseVolume(claim.claim, requirements, this.#deps.available.from(node), { node, excluded })
  }

  #fit(toProvision: readonly PlannedClaim[], node: NodeInfo): NodePlan['provision'] | undefined {
    const fit = this.#fitterFor(toProvision.filter(({ claim }) => this.#tracked.has(claim))).fit(node.labels)
    return fit && this.#provisions(toProvision, fit)
  }

  /** A fit has one report per tracked claim, in the same order. */
  #provisions(toProvision: readonly PlannedClaim[], fit: Fit): NodePlan['provision'] {
    let nth = 0
    return toProvision.map(({ claim }) => ({ claim, report: this.#tracked.has(claim) ? fit[nth++] : undefined }))
  }

  /** Which claims need a new volume may differ from node to node; most often all do. */
  #fitterFor(tracked: readonly PlannedClaim[]): VolumeFitter {
    if (tracked.length === this.#tracked.size) return this.#fitter
    const id = tracked.map(({ claim }) => claim.key).join(' ')
    const requests = () => tracked.map(({ claim }) => requestOf(claim))
    return getOrCreate(this.#fitters, id, () => new VolumeFitter(this.#deps.capacity, requests()))
  }
}

const requestOf = ({ key, storageClass, bytes }: DelayedClaim): VolumeRequest => ({
  claimKey: key,
  className: storageClass.metadata.name,
  driver: storageClass.provisioner,
  bytes,
})

function plannedClaim(claim: DelayedClaim, available: AvailableVolumes): PlannedClaim {
  const requirements = requirementsOf(claim.claim)
  const { provisioner, allowedTopologies } = claim.storageClass
  return {
    claim,
    requirements,
    mayMatchVolume: available.has(requirements) || available.reservedFor(claim.key).length > 0,
    canBeProvisioned: canProvision(provisioner),
    isAllowed: topologyFilter(allowedTopologies),
  }
}

const NO_PROVISIONER = 'kubernetes.io/no-provisioner'
export const canProvision = (provisioner: StorageClass['provisioner']): boolean =>
  provisioner !== '' && provisioner !== NO_PROVISIONER

/** Without terms every node is allowed; a term without expressions allows none. */
function topologyFilter(terms: readonly TopologySelectorTerm[] | undefined): PlannedClaim['isAllowed'] {
  if (!terms || terms.length === 0) return () => true
  return (labels) =>
    terms.some(({ matchLabelExpressions = [] }) => {
      if (matchLabelExpressions.length === 0) return false
      return matchLabelExpressions.every(
        ({ key, values }) => Object.hasOwn(labels, key) && values.includes(labels[key]!),
      )
    })
}
