// Determines the size to request from the driver next. Pure. In the states ControllerResize… a lowered request replaces the
// earlier target even without a final response: a driver that has already expanded the volume returns the actual size. req
// is the requested size, alloc is status.allocatedResources, and pvcap is the volume's capacity.
//
//   pvcap   state of the claim                        target
//   < req   NodeResizeInfeasible                      alloc
//   < req   NodeResizePending, NodeResizeInProgress   alloc; none if pvcap ≥ alloc, because the node expands next
//   < req   ControllerResize…, none                   req
//   ≥ req   NodeResizePending, NodeResizeInProgress   none, because the node expands next
//   ≥ req   NodeResizeInfeasible                      alloc; req with a node-only driver
//   ≥ req   ControllerResize…                         pvcap
//   ≥ req   none                                      the larger of req and alloc; none without alloc while waiting for
//                                                     the node
import { isLess, maxQuantity } from '../../volumes/sizes.ts'

export interface Sizes {
  readonly req: string
  readonly alloc: string | undefined
  readonly pvcap: string
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
  const { req, alloc = req, pvcap, state, isWaitingForNode } = sizes
  const isBelowRequest = isLess(pvcap, req)
  switch (state) {
    case 'NodeResizeInfeasible':
      return !isBelowRequest && isNodeOnly ? req : alloc
    case 'NodeResizePending':
    case 'NodeResizeInProgress':
      return isBelowRequest && isLess(pvcap, alloc) ? alloc : undefined
    case 'ControllerResizeInProgress':
    case 'ControllerResizeInfeasible':
      return maxQuantity(req, pvcap)
    default:
      if (isBelowRequest) return req
      if (sizes.alloc === undefined && isWaitingForNode) return undefined
      return maxQuantity(req, alloc)
  }
}
