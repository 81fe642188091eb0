// Determines the size to request from the driver next. Pure. A call without a final response may have expanded the volume,
// so a smaller size is requested only after a final response. req is the requested size, alloc is
// status.allocatedResources, and pvcap is the capacity of the volume.
//
//   pvcap   state of the claim                        target
//   < req   NodeResizeInfeasible                      alloc
//   < req   NodeResizePending, NodeResizeInProgress   alloc; none if pvcap ≥ alloc, because the node expands next
//   < req   ControllerResizeInProgress                alloc; req after a final response
//   < req   ControllerResizeInfeasible, none          req
//   ≥ req   NodeResizePending, NodeResizeInProgress   none, because the node expands next
//   ≥ req   NodeResizeInfeasible                      alloc; req with a node-only driver
//   ≥ req   ControllerResizeInProgress                alloc; pvcap after a final response
//   ≥ req   ControllerResizeInfeasible                pvcap
//   ≥ req   none                                      the larger of req and alloc; none while waiting for the node
import { isLess } from '../../volumes/sizes.ts'

export interface Sizes {
  readonly req: string
  readonly alloc: string | undefined
  readonly pvcap: string
  readonly state: string | undefined
  /** The condition FileSystemResizePending, which older resizers and servers without recovery use instead of a state. */
  readonly isWaitingForNode: boolean
}

export interface TargetOptions {
  /** Whether the driver's last response was a final error for the size in `alloc`. */
  readonly isRejected: boolean
  /** Whether the driver expands volumes only with NodeExpandVolume. */
  readonly isNodeOnly: boolean
}

/** Returns undefined if the driver must not be called now. */
export function targetSizeOf(sizes: Sizes, { isRejected, isNodeOnly }: TargetOptions): string | undefined {
  const { req, alloc = req, pvcap, state, isWaitingForNode } = sizes
  const isBelowRequest = isLess(pvcap, req)
  switch (state) {
    case 'NodeResizeInfeasible':
      return !isBelowRequest && isNodeOnly ? req : alloc
    case 'NodeResizePending':
    case 'NodeResizeInProgress':
      return isBelowRequest && isLess(pvcap, alloc) ? alloc : undefined
    case 'ControllerResizeInProgress':
      if (!isRejected) return alloc
      return larger(req, pvcap)
    case 'ControllerResizeInfeasible':
      return larger(req, pvcap)
    default:
      if (isBelowRequest) return req
      if (sizes.alloc === undefined && isWaitingForNode) return undefined
      return larger(req, alloc)
  }
}

const larger = (a: string, b: string): string => (isLess(a, b) ? b : a)
