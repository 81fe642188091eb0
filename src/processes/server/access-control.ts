// Wires a server's access control: authentication (certificates and tokens), authorization and admission (RBAC, and the rules for
// nodes and service accounts), and the audit log.
import {
  type ApiServer,
  type ApiServerOptions,
  createBootstrapRoles,
  createRbac,
  serviceAccountAdmission,
  standardAdmission,
} from '../../apiserver/index.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import type { Store } from '../../store/index.ts'
import { type AccountTokenSettings, openAccountTokens } from './account-tokens.ts'
import { type AuditSettings, openAudit } from './audit.ts'
import { openCredentials } from './credentials.ts'
import { createNodeIdentity } from './nodes/node-identity.ts'
import { rethrowUnusablePki } from './unusable-directory.ts'

export interface AccessControlOptions {
  readonly store: Store
  readonly dataDir: string
  readonly pkiDir: string
  /** Host names and addresses in the serving certificate. */
  readonly hosts: readonly string[]
  readonly accountTokens: AccountTokenSettings
  readonly audit: AuditSettings
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Returns the server's URL; called after it listens. */
  serverUrl(): string
}

export type AccessControl = Awaited<ReturnType<typeof openAccessControl>>

export async function openAccessControl(options: AccessControlOptions) {
  const { store, dataDir, pkiDir, hosts, clock, random, log, serverUrl } = options
  const credentials = await openCredentials({ dir: pkiDir, hosts, clock, log }).catch(rethrowUnusablePki(pkiDir))
  const rbac = createRbac({ store, clock, log })
  const nodeIdentity = createNodeIdentity({ store, clock, log, next: rbac.authorizer })
  const tokenOptions = { ...options.accountTokens, pkiDir, store, clock, log, serverUrl }
  const accountTokens = await openAccountTokens(tokenOptions).catch(rethrowUnusablePki(pkiDir))
  const authenticator = await credentials.createAuthenticator({
    tokenAuthenticators: [nodeIdentity.authenticateToken, accountTokens.authenticator],
    apiAudiences: accountTokens.apiAudiences,
  })
  const auditing = await openAudit({ settings: options.audit, dataDir, clock, log })
  const serverOptions = {
    authenticator,
    authorizer: nodeIdentity.authorizer,
    admission: standardAdmission([
      rbac.escalationCheck,
      ...nodeIdentity.admission,
      serviceAccountAdmission({ random, rootCa: credentials.pki.caCert }),
    ]),
    audit: auditing.audit,
    accountTokens,
  } satisfies Partial<ApiServerOptions>
  return {
    serverOptions,
    credentials,
    nodeIdentity,
    accountTokens,
    auditing,
    /** Authorizes by RBAC only, without the node authorizer. */
    roleAuthorizer: rbac.authorizer,
    /** Creates the bootstrap roles, loads the objects that decisions depend on, and watches them until the signal is aborted. */
    async start(server: ApiServer, client: Client, signal: AbortSignal): Promise<void> {
      await nodeIdentity.start(server, signal)
      await createBootstrapRoles(client, server.resources)
      await rbac.start({ client, signal })
      await accountTokens.start(signal)
    },
  }
}
