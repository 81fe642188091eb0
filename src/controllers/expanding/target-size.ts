// Which size to request from the driver next. Pure. The rule behind the table: while a call without a final response may
// have expanded the volume, no smaller size is requested; only a final response allows a lower target again.
//
//   pvcap   state of the claim                        target
//   < req   NodeResizeInfeasible                      alloc
//   < req   NodeResizePending, NodeResizeInProgress   alloc; nothing once pvcap has it: the node expands next
//   < req   ControllerResizeInProgress                alloc; req after a final response
//   < req   ControllerResizeInfeasible, none          req
//   ≥ req   NodeResizePending, NodeResizeInProgress   nothing: the node expands next
//   ≥ req   NodeResizeInfeasible                      alloc; req where only nodes grow volumes
//   ≥ req   ControllerResizeInProgress                alloc; pvcap after a final response
//   ≥ req   ControllerResizeInfeasible                pvcap
//   ≥ req   none                                      the larger of req and alloc; nothing while waiting for the node
import { isLess } from '../../volumes/sizes.ts'

export interface Sizes {
  readonly req: string
  readonly alloc: string | undefined
  readonly pvcap: string
  readonly state: string | undefined
  /** An older resizer, or one on a server without recovery, reports this only by a condition. */
  readonly isWaitingForNode: boolean
}

export interface TargetFacts {
  /** The last answer to the size in `alloc` was a final no. */
  readonly isFinal: boolean
  /** The driver grows volumes on their nodes only. */
  readonly isNodeOnly: boolean
}

/** Undefined: it is not the driver's turn. */
export function targetOf(sizes: Sizes, { isFinal, isNodeOnly }: TargetFacts): string | undefined {
  const { req, alloc = req, pvcap, state, isWaitingForNode } = sizes
  const isBehind = isLess(pvcap, req)
  switch (state) {
    case 'NodeResizeInfeasible':
      return !isBehind && isNodeOnly ? req : alloc
    case 'NodeResizePending':
    case 'NodeResizeInProgress':
      return isBehind && isLess(pvcap, alloc) ? alloc : undefined
    case 'ControllerResizeInProgress':
      if (!isFinal) return alloc
      return larger(req, pvcap)
    case 'ControllerResizeInfeasible':
      return larger(req, pvcap)
    default:
      if (isBehind) return req
      if (sizes.alloc === undefined && isWaitingForNode) return undefined
      return larger(req, alloc)
  }
}

const larger = (a: string, b: string): string => (isLess(a, b) ? b : a)
