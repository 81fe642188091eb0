// Approves, signs and deletes CertificateSigningRequests (plan-request.ts). It runs in the API server process, which has
// the CA's key. Several servers may run it on one store: the first decision that is written is kept.
import type { KeyObject } from 'node:crypto'
import type { Stored } from '../../api/kind.ts'
import { certificateSigningRequestKind } from '../../api/kinds/certificate-signing-request/certificate-signing-request.ts'
import type { CertificateSigningRequest } from '../../api/kinds/certificate-signing-request/certificate-signing-request-schema.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { keyOfObject, type ObjectKey, refOfKey } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { checkAfter, createController, done, type Outcome, source, type WorkQueue } from '../../runtime/index.ts'
import {
  type CertificateUse,
  type NodeCertificatePermission,
  planRequest,
  type RequestAction,
  type Validity,
} from './plan-request.ts'

/** The user who created a request. */
export interface Requester {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

export interface SigningRequest extends Validity {
  readonly use: CertificateUse
  /** The subject in DER. */
  readonly subject: Uint8Array
  readonly publicKey: KeyObject
  /** Subject alternative names in DER. */
  readonly alternativeNames: readonly Uint8Array[]
  readonly canEncipherKeys: boolean
}

export interface CertificateControllerDeps extends ControllerDeps {
  hasPermission(requester: Requester, permission: NodeCertificatePermission): boolean
  /** Returns the certificate in PEM. */
  sign(request: SigningRequest): string
}

export interface CertificateController {
  readonly queue: WorkQueue
  run(signal: AbortSignal): Promise<void>
}

const NAME = 'certificates'
const WORKERS = 4

export function createCertificateController(deps: CertificateControllerDeps): CertificateController {
  const { client, caches, clock, random, log, metrics } = deps
  const requests = caches.of(certificateSigningRequestKind)
  const controller = createController({
    name: NAME,
    operation: { component: 'certificates', name: 'Sign' },
    clock,
    random,
    log,
    workers: WORKERS,
    metrics,
    sources: [source({ cache: requests, keysOf: (request) => [keyOfObject(request)] })],
    reconcile,
  })
  metrics?.queues.add(controller.queue)

  async function reconcile(key: ObjectKey): Promise<Outcome> {
    const csr = requests.get(refOfKey(key))
    if (!csr || csr.metadata.deletionTimestamp) return done
    const requester = requesterOf(csr)
    const action = planRequest(csr, {
      nowMs: clock.nowMs(),
      hasPermission: (permission) => deps.hasPermission(requester, permission),
    })
    if (action.do === 'wait') {
      return checkAfter(action.untilMs - clock.nowMs(), 'the request is deleted when its retention time ends')
    }
    try {
      await apply(csr, action)
      return done // the change of the request causes the next reconcile
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return done // changed since it was read
      throw error
    }
  }

  async function apply(csr: Readonly<Stored<CertificateSigningRequest>>, action: RequestAction): Promise<void> {
    const { conditions = [], ...status } = csr.status ?? {}
    const addCondition = (type: string, reason: string, message: string) => ({
      ...csr,
      status: { ...status, conditions: [...conditions, { type, status: 'True', reason, message }] },
    })
    switch (action.do) {
      case 'approve': {
        const approvedCsr = addCondition('Approved', 'AutoApproved', action.message)
        await client.update(certificateSigningRequestKind, approvedCsr, { subresource: 'approval' })
        log.info({ request: csr.metadata.name, user: csr.spec.username }, 'approved the certificate of a node')
        return
      }
      case 'sign': {
        const { request, use, canEncipherKeys, validity } = action
        const { encodedSubject: subject, publicKey } = request
        // Client certificates have no alternative names, because the server identifies clients by CN and O.
        const alternativeNames = use === 'server' ? request.alternativeNames.map(({ encoding }) => encoding) : []
        const pem = deps.sign({ use, subject, publicKey, alternativeNames, canEncipherKeys, ...validity })
        const certificate = Buffer.from(pem).toString('base64')
        const signedCsr = { ...csr, status: { ...status, conditions: [...conditions], certificate } }
        await client.update(certificateSigningRequestKind, signedCsr, { subresource: 'status' })
        log.info({ request: csr.metadata.name, subject: request.subject.commonName }, `issued a ${use} certificate`)
        return
      }
      case 'fail': {
        const failedCsr = addCondition('Failed', 'SignerValidationFailure', action.message)
        await client.update(certificateSigningRequestKind, failedCsr, { subresource: 'status' })
        return
      }
      case 'delete':
        await client.delete(certificateSigningRequestKind, { name: csr.metadata.name }, { uid: csr.metadata.uid })
    }
  }

  return { queue: controller.queue, run: controller.run }
}

const requesterOf = ({ spec }: CertificateSigningRequest): Requester => ({
  name: spec.username ?? '',
  groups: spec.groups ?? [],
  ...(spec.uid ? { uid: spec.uid } : {}),
  ...(spec.extra ? { extra: spec.extra } : {}),
})
