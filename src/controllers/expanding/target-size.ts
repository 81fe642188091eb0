// Determines the size to request from the driver next. Pure. In the states ControllerResize… a lowered request replaces the
// earlier target even without a final response: a driver that has already expanded the volume returns the actual size.
// "Allocated" is status.allocatedResources of the claim, or the request if it is absent; "volume" is the volume's capacity.
//
//   volume      state of the claim                        target
//   < request   NodeResizeInfeasible                      allocated
//   < request   NodeResizePending, NodeResizeInProgress   allocated; none if volume ≥ allocated, because the node expands next
//   < request   ControllerResize…, none                   request
//   ≥ request   NodeResizePending, NodeResizeInProgress   none, because the node expands next
//   ≥ request   NodeResizeInfeasible                      allocated; request with a node-only driver
//   ≥ request   ControllerResize…                         volume
//   ≥ request   none                                      the larger of request and allocated; none if allocatedResources is
//                                                         absent while waiting for the node
import { isLess, maxQuantity } from '../../volumes/sizes.ts'

export interface Sizes {
  readonly requestedSize: string
  readonly allocatedSize: string | undefined
  readonly volumeSize: string
  readonly state: string | undefined
  /** The condition FileSystemResizePending, which older resizers and servers without recovery use instead of a state. */
  readonly isWaitingForNode: boolean
}

export interface TargetOptions {
  /** Whether the driver expands volumes only with NodeExpandVolume. */
  readonly isNodeOnly: boolean
}

/** Returns undefined if the driver must not be called now. */
export function targetSizeOf(sizes: Sizes, { isNodeOnly }: TargetOptions): string | undefined {
  const { requestedSize, allocatedSize = requestedSize, volumeSize, state, isWaitingForNode } = sizes
  const isBelowRequest = isLess(volumeSize, requestedSize)
  switch (state) {
    case 'NodeResizeInfeasible':
      return !isBelowRequest && isNodeOnly ? requestedSize : allocatedSize
    case 'NodeResizePending':
    case 'NodeResizeInProgress':
      return isBelowRequest && isLess(volumeSize, allocatedSize) ? allocatedSize : undefined
    case 'ControllerResizeInProgress':
    case 'ControllerResizeInfeasible':
      return maxQuantity(requestedSize, volumeSize)
    default:
      if (isBelowRequest) return requestedSize
      if (sizes.allocatedSize === undefined && isWaitingForNode) return undefined
      return maxQuantity(requestedSize, allocatedSize)
  }
}
