// Public exports of the node authorizer, and its wiring: an authorizer in front of RBAC, and an admission plugin.
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Store } from '../../store/index.ts'
import type { AdmissionPlugin } from '../admission/index.ts'
import type { StoredObjects } from '../objects/stored-object.ts'
import { NODE_RULES } from '../rbac/bootstrap-policy.ts'
import type { Authorizer } from '../security/index.ts'
import { followObjects } from './follow-objects.ts'
import { createNodeAuthorizer } from './node-authorizer.ts'
import { createNodeGraph } from './node-graph.ts'
import { nodeRestriction } from './node-restriction.ts'

export { NODES_GROUP, nodeUser } from './node-identity.ts'

export interface NodeAuthorization {
  /** Passes requests that it does not allow to the next authorizer. */
  readonly authorizer: Authorizer
  readonly restriction: AdmissionPlugin
  /** Loads pods, volumes and attachments and follows them until the signal is aborted. */
  start(options: { readonly objects: StoredObjects; readonly signal: AbortSignal }): Promise<void>
}

export interface NodeAuthorizationOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  /** Authorizes other users, and requests from nodes that the node authorizer does not allow. */
  readonly next: Authorizer
}

export function createNodeAuthorization({ store, clock, log, next }: NodeAuthorizationOptions): NodeAuthorization {
  const graph = createNodeGraph()
  return {
    authorizer: createNodeAuthorizer({ graph, rules: NODE_RULES, next }),
    restriction: nodeRestriction,
    start: ({ objects, signal }) => followObjects({ store, objects, graph, clock, log, signal }),
  }
}
