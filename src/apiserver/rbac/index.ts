// Public exports of RBAC, and their wiring: an authorizer, the check against escalation, and the writer of aggregated roles.
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/client.ts'
import type { Store } from '../../store/index.ts'
import type { AdmissionPlugin } from '../admission/index.ts'
import { aggregateRoles } from './aggregate-roles.ts'
import { escalationCheck } from './escalation.ts'
import { followRoles } from './follow-roles.ts'
import { createRbacAuthorizer, type RbacAuthorizer } from './rbac-authorizer.ts'
import { createRoleIndex } from './role-index.ts'

export { createBootstrapRoles } from './bootstrap-roles.ts'

export interface Rbac {
  readonly authorizer: RbacAuthorizer
  readonly escalationCheck: AdmissionPlugin
  /** Loads the roles and follows them until the signal is aborted. Before they are loaded, only system:masters has access. */
  start(options: RbacStartOptions): Promise<void>
}

export interface RbacStartOptions {
  /** Writes the rules of aggregated roles. */
  readonly client: Client
  readonly signal: AbortSignal
}

export function createRbac({ store, clock, log }: { store: Store; clock: Clock; log: Logger }): Rbac {
  const index = createRoleIndex()
  const authorizer = createRbacAuthorizer(index)
  return {
    authorizer,
    escalationCheck: escalationCheck(index, authorizer),
    start: ({ client, signal }) => {
      const onClusterRoles = serialize(async () => {
        try {
          await aggregateRoles(index, client)
        } catch (error) {
          if (signal.aborted) return
          log.warn({ reason: (error as Error).message }, 'cannot write the rules of aggregated roles; retrying')
          clock.after(RETRY_DELAY_MS, onClusterRoles)
        }
      })
      return followRoles({ store, index, clock, log, signal, onClusterRoles })
    },
  }
}

const RETRY_DELAY_MS = 1_000

/** Returns a function that starts `run`, or starts it again after the current run. */
function serialize(run: () => Promise<void>): () => void {
  let isRunning = false
  let isRequested = false
  return function request(): void {
    if (isRunning) {
      isRequested = true
      return
    }
    isRunning = true
    void run().finally(() => {
      isRunning = false
      if (isRequested) {
        isRequested = false
        request()
      }
    })
  }
}
