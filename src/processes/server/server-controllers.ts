// Runs the controllers that need the server's keys or its authenticators, in the process of `stowage up` or, on etcd, of `stowage
// server`. They run without leader election, each as its own service account.
import { Registry } from 'prom-client'
import type { AccountTokens, Authorizer, Pki } from '../../apiserver/index.ts'
import { SERVER_CONTROLLERS, type ServerController } from '../../apiserver/rbac/component-rules.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import {
  createBootstrapSigner,
  createCertificateController,
  createTokenCleaner,
  type NodeCertificatePermission,
  type Requester,
} from '../../controllers/certificates/index.ts'
import { createAccountTokenController } from '../../controllers/service-accounts/index.ts'
import {
  createClientMetrics,
  createManager,
  type OperationRegistry,
  type Runnable,
  type TermDeps,
} from '../../runtime/index.ts'
import type { ClientOf } from './component-clients.ts'

export interface ServerControllersOptions {
  readonly clientOf: ClientOf
  /** Decides whether a requester may get the node certificate that it requests. */
  readonly authorizer: Authorizer
  readonly pki: Pick<Pki, 'caCert' | 'signCertificate'>
  readonly accountTokens: Pick<AccountTokens, 'createSecretToken'>
  readonly operations: OperationRegistry
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
}

export async function runServerControllers(options: ServerControllersOptions): Promise<void> {
  const { clientOf, authorizer, pki, accountTokens, clock, random, log, signal } = options
  const hasPermission = (user: Requester, permission: NodeCertificatePermission): boolean =>
    authorizer.authorize({
      user,
      verb: 'create',
      group: 'certificates.k8s.io',
      version: 'v1',
      resource: 'certificatesigningrequests',
      subresource: permission,
    }).allowed
  const create: Readonly<Record<ServerController, (deps: TermDeps) => Runnable>> = {
    'account-tokens': (deps) =>
      createAccountTokenController({ ...deps, rootCa: pki.caCert, createToken: accountTokens.createSecretToken }),
    'bootstrap-signer': (deps) => createBootstrapSigner(deps),
    certificates: (deps) => createCertificateController({ ...deps, hasPermission, sign: pki.signCertificate }),
    'token-cleaner': (deps) => createTokenCleaner(deps),
  }
  const managers = SERVER_CONTROLLERS.map((name) =>
    createManager({
      client: clientOf(name),
      clock,
      random,
      log,
      metrics: createClientMetrics(new Registry(), options.operations), // the metrics of the server already count these requests
      createControllers: (deps) => [create[name](deps)],
    }),
  )
  await Promise.all(managers.map((manager) => manager.run(signal)))
}
