// Plans the claims of a pod for a node: selects existing volumes to bind and claims to provision, or rejects the node.
// A planner is created once per pod and called for every node.

import { isConfirmedOff } from '../../../api/kinds/node/fencing.ts'
import type { TopologySelectorTerm } from '../../../api/kinds/shared/references-schema.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import { chooseVolume } from '../../../volumes/choose-volume.ts'
import { type ClaimRequirements, requirementsOf, type Volume } from '../../../volumes/matching.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import { type Reason, type RejectionDetail, type Status, unresolvable } from '../../framework/status.ts'
import { getOrCreate } from '../../get-or-create.ts'
import type { AssumedVolumes } from './assumed-volumes.ts'
import type { AvailableVolumes } from './available-volumes.ts'
import type { CapacityReport } from './capacity/capacity-report.ts'
import { type CapacityDeps, type Fit, VolumeFitter, type VolumeRequest } from './capacity/fit-volumes.ts'
import type { BoundClaim, DelayedClaim } from './pod-volumes.ts'
import {
  BIND_CONFLICT,
  LABELS_MISSING,
  NODE_CONFLICT,
  NODE_LOST,
  NOT_ENOUGH_SPACE,
  VOLUME_NOT_FOUND,
} from './reasons.ts'
import {
  detailBoundClaim,
  detailMissingLabels,
  detailOtherNode,
  detailShortage,
  detailUnprovisionable,
} from './rejection-details.ts'

export interface NodePlan {
  readonly bindings: readonly { readonly claim: DelayedClaim; readonly volume: Volume }[]
  /** `report` is undefined if the driver does not track capacity. */
  readonly provisions: readonly { readonly claim: DelayedClaim; readonly report: CapacityReport | undefined }[]
  /** Claims that are already being bound on this node for another pod. */
  readonly sharedClaims: readonly DelayedClaim[]
}

export interface PlannerDeps {
  readonly availableVolumes: AvailableVolumes
  readonly assumedVolumes: AssumedVolumes
  readonly capacity: CapacityDeps
  /** Whether the CSIDriver of the driver sets storageCapacity. */
  readonly tracksCapacity: (driver: string) => boolean
  /** Returns the topology keys that the driver has registered on the node and whose labels the node lacks. */
  readonly missingLabels: (node: NodeInfo, driver: string) => readonly string[]
}

interface PlannedClaim {
  readonly claim: DelayedClaim
  readonly requirements: ClaimRequirements
  /** Whether an existing volume may match the claim. */
  readonly mayMatchVolume: boolean
  readonly canBeProvisioned: boolean
  readonly isAllowed: (labels: Readonly<Record<string, string>>) => boolean
}

type Assignment =
  | ({ readonly is: 'assigned'; readonly toProvision: readonly PlannedClaim[] } & Pick<
      NodePlan,
      'bindings' | 'sharedClaims'
    >)
  /** The claim's volume has to be on another node. */
  | { readonly is: 'conflict'; readonly claim: DelayedClaim; readonly nodeName: string }

const NODE_LOST_DETAIL = { type: NODE_LOST.type, message: 'the node is lost' } as const
const EMPTY_PLAN: NodePlan = { bindings: [], provisions: [], sharedClaims: [] }
const STATUS_BY_REASON = new Map(
  [BIND_CONFLICT, LABELS_MISSING, NODE_LOST, NOT_ENOUGH_SPACE].map((reason) => [reason, unresolvable(reason)]),
)

export class NodePlanner {
  readonly #deps: PlannerDeps
  readonly #boundClaims: readonly BoundClaim[]
  readonly #delayedClaims: readonly PlannedClaim[]
  readonly #plans = new Map<NodeInfo, NodePlan>()
  /** Whether every delayed claim needs a new volume on every node. The filter then needs fewer checks per node. */
  readonly #needsOnlyNewVolumes: boolean
  readonly #fits = new Map<NodeInfo, Fit>()
  readonly #fitter: VolumeFitter
  readonly #trackedClaims: ReadonlySet<DelayedClaim>
  readonly #fitters = new Map<string, VolumeFitter>()

  constructor(deps: PlannerDeps, boundClaims: readonly BoundClaim[], delayedClaims: readonly DelayedClaim[]) {
    this.#deps = deps
    this.#boundClaims = boundClaims
    this.#delayedClaims = delayedClaims.map((claim) => toPlannedClaim(claim, deps.availableVolumes))
    const trackedClaims = delayedClaims.filter(
      (claim) => claim.bytes > 0n && deps.tracksCapacity(claim.storageClass.provisioner),
    )
    this.#trackedClaims = new Set(trackedClaims)
    this.#fitter = new VolumeFitter(deps.capacity, trackedClaims.map(requestOf))
    this.#needsOnlyNewVolumes = this.#delayedClaims.every(
      ({ claim, mayMatchVolume }) =>
        !mayMatchVolume && claim.selectedNode === undefined && !deps.assumedVolumes.bindingOf(claim.key),
    )
  }

  /** Returns the plan for a node that passed `filter`. */
  planFor(node: NodeInfo): NodePlan {
    const plan = this.#plans.get(node)
    if (plan) return plan
    const fit = this.#fits.get(node)
    return fit
      ? { bindings: [], provisions: this.#pairWithReports(this.#delayedClaims, fit), sharedClaims: [] }
      : EMPTY_PLAN
  }

  /** Describes, after all nodes were rejected, which volume lacks capacity. */
  describeShortage(): string | undefined {
    for (const fitter of [this.#fitter, ...this.#fitters.values()]) {
      const message = fitter.describeShortage()
      if (message !== undefined) return message
    }
    return undefined
  }

  filter(node: NodeInfo): Status | undefined {
    const boundClaimErrors = this.#checkBound(node)
    const delayedClaimReason = this.#needsOnlyNewVolumes ? this.#planNew(node) : this.#planDelayed(node)
    if (!boundClaimErrors) return delayedClaimReason && STATUS_BY_REASON.get(delayedClaimReason)
    const reasons: Reason[] = []
    if (boundClaimErrors.hasNodeConflict) reasons.push(NODE_CONFLICT)
    if (delayedClaimReason) reasons.push(delayedClaimReason)
    if (boundClaimErrors.isVolumeMissing) reasons.push(VOLUME_NOT_FOUND)
    return unresolvable(...reasons)
  }

  /** Returns the claims for which `filter` rejects the node, with the volume or the capacity report of each. */
  detailRejection(node: NodeInfo): RejectionDetail[] {
    const details = this.#boundClaims.flatMap((boundClaim) => detailBoundClaim(boundClaim, node))
    const assignment = this.#assignVolumes(node)
    if (assignment.is === 'conflict') return [...details, detailOtherNode(assignment.claim, assignment.nodeName)]
    const { toProvision } = assignment
    if (toProvision.length > 0 && isConfirmedOff(node.node)) return [...details, NODE_LOST_DETAIL]
    const notProvisionable = toProvision.filter(
      (plannedClaim) => !plannedClaim.canBeProvisioned || !plannedClaim.isAllowed(node.labels),
    )
    if (notProvisionable.length > 0)
      return [
        ...details,
        ...notProvisionable.map(({ claim, canBeProvisioned }) => detailUnprovisionable(claim, canBeProvisioned)),
      ]
    const missingLabels = toProvision.flatMap(({ claim }) => {
      const keys = this.#deps.missingLabels(node, claim.storageClass.provisioner)
      return keys.length > 0 ? [detailMissingLabels(claim, keys)] : []
    })
    if (missingLabels.length > 0) return [...details, ...missingLabels]
    const trackedClaims = toProvision.filter(({ claim }) => this.#trackedClaims.has(claim))
    const shortage = this.#fitterFor(trackedClaims).findShortage(node.labels)
    return shortage ? [...details, detailShortage(shortage)] : details
  }

  #checkBound(node: NodeInfo): { hasNodeConflict: boolean; isVolumeMissing: boolean } | undefined {
    let hasNodeConflict = false
    let isVolumeMissing = false
    for (const { volume } of this.#boundClaims) {
      if (!volume) isVolumeMissing = true
      else if (!isReachableFrom(volume, node)) hasNodeConflict = true
    }
    return hasNodeConflict || isVolumeMissing ? { hasNodeConflict, isVolumeMissing } : undefined
  }

  #planNew(node: NodeInfo): Reason | undefined {
    if (this.#delayedClaims.length > 0 && isConfirmedOff(node.node)) return NODE_LOST
    const conflict = this.#checkTopology(this.#delayedClaims, node)
    if (conflict) return conflict
    const fit = this.#fitter.fit(node.labels)
    if (!fit) return NOT_ENOUGH_SPACE
    this.#fits.set(node, fit)
    return undefined
  }

  #planDelayed(node: NodeInfo): Reason | undefined {
    const assignment = this.#assignVolumes(node)
    if (assignment.is === 'conflict') return BIND_CONFLICT
    const { bindings, sharedClaims, toProvision } = assignment
    if (toProvision.length > 0 && isConfirmedOff(node.node)) return NODE_LOST
    const conflict = this.#checkTopology(toProvision, node)
    if (conflict) return conflict
    const provisions = this.#planProvisioning(toProvision, node)
    if (!provisions) return NOT_ENOUGH_SPACE
    this.#plans.set(node, { bindings, provisions, sharedClaims })
    return undefined
  }

  /** Returns why volumes of these claims cannot be provisioned for the topology of the node. */
  #checkTopology(toProvision: readonly PlannedClaim[], node: NodeInfo): Reason | undefined {
    for (const { canBeProvisioned, isAllowed } of toProvision) {
      if (!canBeProvisioned || !isAllowed(node.labels)) return BIND_CONFLICT
    }
    for (const { claim } of toProvision) {
      if (this.#deps.missingLabels(node, claim.storageClass.provisioner).length > 0) return LABELS_MISSING
    }
    return undefined
  }

  /** Assigns an available volume that the node can reach to each claim that it matches. Other claims have to be provisioned. */
  #assignVolumes(node: NodeInfo): Assignment {
    const bindings: { claim: DelayedClaim; volume: Volume }[] = []
    const toProvision: PlannedClaim[] = []
    const sharedClaims: DelayedClaim[] = []
    let excludedVolumes: Set<string> | undefined
    for (const plannedClaim of this.#delayedClaims) {
      const { claim } = plannedClaim
      const assumedBinding = this.#deps.assumedVolumes.bindingOf(claim.key)
      if (assumedBinding) {
        if (assumedBinding.nodeName !== node.name) return { is: 'conflict', claim, nodeName: assumedBinding.nodeName }
        sharedClaims.push(claim)
      } else if (claim.selectedNode !== undefined) {
        if (claim.selectedNode !== node.name) return { is: 'conflict', claim, nodeName: claim.selectedNode }
        toProvision.push(plannedClaim)
      } else {
        const volume = plannedClaim.mayMatchVolume ? this.#chooseVolume(plannedClaim, node, excludedVolumes) : undefined
        if (volume) {
          bindings.push({ claim, volume })
          excludedVolumes ??= new Set(this.#deps.assumedVolumes.volumes)
          excludedVolumes.add(volume.metadata.name)
        } else toProvision.push(plannedClaim)
      }
    }
    return { is: 'assigned', bindings, sharedClaims, toProvision }
  }

  #chooseVolume(
    { claim, requirements }: PlannedClaim,
    node: NodeInfo,
    excludedVolumes: ReadonlySet<string> = this.#deps.assumedVolumes.volumes,
  ) {
    return chooseVolume(claim.claim, requirements, this.#deps.availableVolumes.candidatesFor(node), {
      node,
      excluded: excludedVolumes,
    })
  }

  #planProvisioning(toProvision: readonly PlannedClaim[], node: NodeInfo): NodePlan['provisions'] | undefined {
    const fit = this.#fitterFor(toProvision.filter(({ claim }) => this.#trackedClaims.has(claim))).fit(node.labels)
    return fit && this.#pairWithReports(toProvision, fit)
  }

  /** Pairs each claim with its report, if its capacity is tracked. `fit` has one report per tracked claim, in the same order. */
  #pairWithReports(toProvision: readonly PlannedClaim[], fit: Fit): NodePlan['provisions'] {
    let position = 0
    return toProvision.map(({ claim }) => ({
      claim,
      report: this.#trackedClaims.has(claim) ? fit[position++] : undefined,
    }))
  }

  /** Returns the fitter for these claims. The claims that need a new volume may differ between nodes. */
  #fitterFor(trackedClaims: readonly PlannedClaim[]): VolumeFitter {
    if (trackedClaims.length === this.#trackedClaims.size) return this.#fitter
    const id = trackedClaims.map(({ claim }) => claim.key).join(' ')
    const requests = () => trackedClaims.map(({ claim }) => requestOf(claim))
    return getOrCreate(this.#fitters, id, () => new VolumeFitter(this.#deps.capacity, requests()))
  }
}

const requestOf = ({ key, storageClass, bytes }: DelayedClaim): VolumeRequest => ({
  claimKey: key,
  className: storageClass.metadata.name,
  driver: storageClass.provisioner,
  bytes,
})

function toPlannedClaim(claim: DelayedClaim, availableVolumes: AvailableVolumes): PlannedClaim {
  const requirements = requirementsOf(claim.claim)
  const { provisioner, allowedTopologies } = claim.storageClass
  return {
    claim,
    requirements,
    mayMatchVolume: availableVolumes.has(requirements) || availableVolumes.reservedFor(claim.key).length > 0,
    canBeProvisioned: canProvision(provisioner),
    isAllowed: createTopologyFilter(allowedTopologies),
  }
}

const NO_PROVISIONER = 'kubernetes.io/no-provisioner'
export const canProvision = (provisioner: StorageClass['provisioner']): boolean =>
  provisioner !== '' && provisioner !== NO_PROVISIONER

/** Returns a predicate on node labels. Without terms every node is allowed; a term without expressions matches no node. */
function createTopologyFilter(terms: readonly TopologySelectorTerm[] | undefined): PlannedClaim['isAllowed'] {
  if (!terms || terms.length === 0) return () => true
  return (labels) =>
    terms.some(({ matchLabelExpressions = [] }) => {
      if (matchLabelExpressions.length === 0) return false
      return matchLabelExpressions.every(
        ({ key, values }) => Object.hasOwn(labels, key) && values.includes(labels[key]!),
      )
    })
}
