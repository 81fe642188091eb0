// Wires the node authorizer, and the authenticator for the bootstrap tokens of joining nodes, into the API server process.
import {
  type ApiServer,
  certificateAdmission,
  createBootstrapTokens,
  createNodeAuthorization,
  inProcessClient,
  nodeUser,
} from '../../../apiserver/index.ts'
import type { Authorizer } from '../../../apiserver/security/index.ts'
import type { Clock } from '../../../base/clock.ts'
import type { Logger } from '../../../base/log.ts'
import type { Client } from '../../../client/index.ts'
import type { Store } from '../../../store/index.ts'

export interface NodeIdentityOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  /** Authorizes requests that the node authorizer does not allow. */
  readonly next: Authorizer
}

export function createNodeIdentity({ store, clock, log, next }: NodeIdentityOptions) {
  const { authorizer, restriction, start } = createNodeAuthorization({ store, clock, log, next })
  const tokens = createBootstrapTokens({ store, clock, log })
  return {
    authorizer,
    admission: [restriction, certificateAdmission(authorizer)],
    authenticateToken: tokens.authenticate,
    /** Loads the objects that the authorizer and the authenticator depend on, and watches them until the signal is aborted. */
    async start(server: ApiServer, signal: AbortSignal): Promise<void> {
      const { objects } = server.objects
      const onRevocation = () => void server.endUnauthenticatedStreams()
      await Promise.all([tokens.start({ objects, signal, onRevocation }), start({ objects, signal })])
    },
    /** Returns a client that acts as the node. */
    clientOf: ({ objects }: ApiServer, nodeName: string): Client =>
      inProcessClient(objects, nodeUser(nodeName), authorizer),
  }
}
