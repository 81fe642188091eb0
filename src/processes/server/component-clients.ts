// Creates the clients of the components in the API server process. Each client acts as its own user
// (apiserver/rbac/component-roles.ts) and is authorized like a client over HTTP, so that `stowage up` also reports a permission
// that a component lacks: in the log, in an event and in the metric stowage_missing_rights.
import {
  type ApiServer,
  type Authorizer,
  type InProcessComponent,
  inProcessClient,
  userOf,
} from '../../apiserver/index.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { type ClientMetrics, createEventRecorder } from '../../runtime/index.ts'
import { createRights } from '../../runtime/rights.ts'

export interface ComponentClientsOptions {
  readonly server: Pick<ApiServer, 'objects'>
  readonly authorizer: Authorizer
  readonly metrics: Pick<ClientMetrics, 'setMissingRight'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Returns a component's client. Calls for the same component return the same client. */
export type ClientOf = (component: InProcessComponent) => Client

export function createComponentClients(options: ComponentClientsOptions): ClientOf {
  const { server, authorizer, metrics, clock, random, log, signal } = options
  const connect = (component: InProcessComponent) => inProcessClient(server.objects, userOf(component), authorizer)
  const events = createEventRecorder({ client: connect('manager'), clock, random, log, component: 'stowage' })
  void events.run(signal)
  const rights = createRights({ clock, log, observe: metrics.setMissingRight, events })
  const clients = new Map<InProcessComponent, Client>()
  return (component) => {
    const client = clients.get(component) ?? rights.track(connect(component), userOf(component).name)
    clients.set(component, client)
    return client
  }
}
