// The identities of nodes in the process of the API server: their authorization, the bootstrap tokens with which they join,
// and the controllers that approve and sign their certificates.
import { Registry } from 'prom-client'
import {
  type ApiServer,
  certificateAdmission,
  createBootstrapTokens,
  createNodeAuthorization,
  inProcessClient,
  nodeUser,
  type Pki,
} from '../../apiserver/index.ts'
import { type Authorizer, accountUser } from '../../apiserver/security/index.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import {
  createCertificateController,
  createTokenCleaner,
  type NodeCertificateRight,
  type Requester,
} from '../../controllers/certificates/index.ts'
import { createClientMetrics, createManager } from '../../runtime/index.ts'
import type { Store } from '../../store/index.ts'

export interface NodeIdentityOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  /** Authorizes other users than nodes. */
  readonly next: Authorizer
}

export function createNodeIdentity({ store, clock, log, next }: NodeIdentityOptions) {
  const { authorizer, restriction, start } = createNodeAuthorization({ store, clock, log, next })
  const tokens = createBootstrapTokens({ store, clock, log })
  return {
    authorizer,
    admission: [restriction, certificateAdmission(authorizer)],
    authenticateToken: tokens.authenticate,
    /** Loads what the authorizer and the authenticator need, and follows its changes until the signal is aborted. */
    async start({ objects }: ApiServer, signal: AbortSignal): Promise<void> {
      await Promise.all([tokens, { start }].map((index) => index.start({ objects: objects.objects, signal })))
    },
    /** Returns a client with the rights of a node. */
    clientOf: ({ objects }: ApiServer, nodeName: string): Client =>
      inProcessClient(objects, nodeUser(nodeName), authorizer),
    runControllers: (options: CertificateControllersOptions): Promise<unknown> =>
      runCertificateControllers({ ...options, authorizer, clock, log }),
  }
}

export interface CertificateControllersOptions {
  readonly server: ApiServer
  readonly pki: Pick<Pki, 'signClientCertificate'>
  readonly random: Random
  readonly signal: AbortSignal
}

/** Runs the controllers without leader election, each as its own service account. */
async function runCertificateControllers(
  options: CertificateControllersOptions & { authorizer: Authorizer; clock: Clock; log: Logger },
): Promise<void> {
  const { server, pki, random, signal, authorizer, clock, log } = options
  const managerOf = (account: string, createControllers: Parameters<typeof createManager>[0]['createControllers']) =>
    createManager({
      client: inProcessClient(server.objects, accountUser('kube-system', account), authorizer),
      clock,
      random,
      log,
      metrics: createClientMetrics(new Registry()), // the metrics of the server already count these requests
      createControllers,
    })
  const hasRight = (user: Requester, right: NodeCertificateRight): boolean =>
    authorizer.authorize({
      user,
      verb: 'create',
      group: 'certificates.k8s.io',
      version: 'v1',
      resource: 'certificatesigningrequests',
      subresource: right,
    }).allowed
  const managers = [
    managerOf('certificate-controller', (deps) => [
      createCertificateController({ ...deps, hasRight, sign: pki.signClientCertificate }),
    ]),
    managerOf('token-cleaner', (deps) => [createTokenCleaner(deps)]),
  ]
  await Promise.all(managers.map((manager) => manager.run(signal)))
}
