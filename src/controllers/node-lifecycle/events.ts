// The events of the node lifecycle controllers, in the Kubernetes wording.
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { EventDetails } from '../../runtime/index.ts'

export const NODE_COMPONENT = 'node-controller'
export const EVICTION_COMPONENT = 'taint-eviction-controller'

export const nodeStatusChanged = (
  { metadata: { name } }: Readonly<Node>,
  reason: 'NodeReady' | 'NodeNotReady',
): EventDetails => normalEvent(reason, `Node ${name} status is now: ${reason}`)

export const nodeRegistered = ({ metadata: { name } }: Readonly<Node>): EventDetails =>
  normalEvent('RegisteredNode', `Node ${name} event: Registered Node ${name} in Controller`)

export const nodeRemoved = ({ metadata: { name } }: Readonly<Node>): EventDetails =>
  normalEvent('RemovingNode', `Node ${name} event: Removing Node ${name} from Controller`)

export const podMarkedForDeletion = (podKey: string): EventDetails =>
  normalEvent('TaintManagerEviction', `Marking for deletion Pod ${podKey}`)

export const podDeletionCancelled = (podKey: string): EventDetails =>
  normalEvent('TaintManagerEviction', `Cancelling deletion of Pod ${podKey}`)

const normalEvent = (reason: string, message: string): EventDetails => ({ type: 'Normal', reason, message })
