// Describes why VolumeBinding rejects a node, for diagnosis: the claim that causes the rejection, and its volume, class or
// capacity report.
import { formatQuantity, quantityFromBytes } from '../../../api/quantity.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import type { RejectionDetail } from '../../framework/status.ts'
import type { Shortage } from './capacity/fit-volumes.ts'
import type { BoundClaim, DelayedClaim } from './pod-volumes.ts'

export function detailBoundClaim({ key, claim, volume }: BoundClaim, node: NodeInfo): RejectionDetail[] {
  if (!volume) {
    const message = `the claim ${key} is bound to the volume ${claim.spec?.volumeName}, which does not exist`
    return [{ type: 'VolumeNotFound', claimKey: key, message }]
  }
  if (isReachableFrom(volume, node)) return []
  const message = `the volume ${volume.metadata.name} of the claim ${key} can only be used on nodes with ${describeAffinity(volume)}`
  return [{ type: 'VolumeNodeConflict', claimKey: key, message }]
}

/** Returns the label values that the node affinity of the volume requires: `zone in (a, b)`. */
function describeAffinity({ spec }: NonNullable<BoundClaim['volume']>): string {
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms ?? []
  return terms
    .map(({ matchExpressions = [], matchFields = [] }) =>
      [...matchExpressions, ...matchFields]
        .map(({ key, operator, values = [] }) =>
          values.length > 0
            ? `${key} ${operator.toLowerCase()} (${values.join(', ')})`
            : `${key} ${operator.toLowerCase()}`,
        )
        .join(' and '),
    )
    .join(', or ')
}

export const detailOtherNode = ({ key }: DelayedClaim, nodeName: string): RejectionDetail => ({
  type: 'SelectedNodeConflict',
  claimKey: key,
  message: `the volume of the claim ${key} is being created for the node ${nodeName}`,
})

export function detailUnprovisionable(
  { key, storageClass: { metadata, provisioner } }: DelayedClaim,
  canBeProvisioned: boolean,
): RejectionDetail {
  if (canBeProvisioned) {
    const message = `the class ${metadata.name} of the claim ${key} does not allow the topology of the node`
    return { type: 'TopologyNotAllowed', claimKey: key, message }
  }
  const message = `no available volume matches the claim ${key}, and its class ${metadata.name} creates none (${provisioner})`
  return { type: 'NoVolumeAvailable', claimKey: key, message }
}

export const detailMissingLabels = (
  { key, storageClass: { provisioner } }: DelayedClaim,
  keys: readonly string[],
): RejectionDetail => ({
  type: 'TopologyLabelsMissing',
  claimKey: key,
  message: `the node lacks the label ${keys.join(', ')}, which the CSI driver ${provisioner} has registered as a topology key`,
})

export function detailShortage(shortage: Shortage): RejectionDetail {
  const { request, reportCount, bestReport } = shortage
  const { claimKey, className, driver, bytes } = request
  const numbers = { requested: formatBytes(bytes), class: className, driver }
  if (reportCount === 0) {
    const message = `the driver ${driver} has reported no capacity of the class ${className} for the node`
    return { type: 'NoCapacityReport', claimKey, message, numbers }
  }
  if (!bestReport) {
    const message = `the capacity that the driver ${driver} has reported for the node cannot be read`
    return { type: 'UnreadableCapacityReport', claimKey, message, numbers }
  }
  return { claimKey, ...detailReport(bestReport, shortage), numbers: { ...numbers, ...numbersOf(bestReport) } }
}

type BestReport = NonNullable<Shortage['bestReport']>

function detailReport(
  { report, freeBytes, reservedBytes }: BestReport,
  { request, otherVolumeCount }: Shortage,
): Pick<RejectionDetail, 'type' | 'message'> {
  const claimText = `the claim ${request.claimKey} requests ${formatBytes(request.bytes)}`
  const { maximumBytes } = report
  if (maximumBytes !== undefined && request.bytes > maximumBytes) {
    const message = `${claimText}, but the largest volume of the class ${request.className} is ${formatBytes(maximumBytes)}`
    return { type: 'MaximumVolumeSizeExceeded', message }
  }
  const reservedText = reservedBytes > 0n ? `, after ${formatBytes(reservedBytes)} for volumes being created` : ''
  const otherVolumesText = otherVolumeCount > 0 ? `, after ${otherVolumeCount} other volumes of the pod` : ''
  const freeText = formatBytes(freeBytes > 0n ? freeBytes : 0n)
  return { type: 'NotEnoughSpace', message: `${claimText}, but ${freeText} is free${reservedText}${otherVolumesText}` }
}

const numbersOf = ({ report, freeBytes, reservedBytes }: BestReport): Record<string, string> => ({
  free: formatBytes(freeBytes > 0n ? freeBytes : 0n),
  reserved: formatBytes(reservedBytes),
  report: report.key,
  ...(report.capacityBytes === undefined ? {} : { capacity: formatBytes(report.capacityBytes) }),
  ...(report.maximumBytes === undefined ? {} : { maximumVolumeSize: formatBytes(report.maximumBytes) }),
})

const formatBytes = (bytes: bigint): string => formatQuantity(quantityFromBytes(bytes))
