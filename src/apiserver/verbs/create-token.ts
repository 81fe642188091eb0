// POST serviceaccounts/NAME/token: issues a token of the ServiceAccount, bound to an object if the request names one.

import { FieldErrors } from '../../api/field-errors.ts'
import type { Kind } from '../../api/kind.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { secretKind } from '../../api/kinds/secret/secret.ts'
import { type TokenRequest, tokenRequest } from '../../api/kinds/service-account/token-request-schema.ts'
import { badRequest, conflict, forbidden, invalid, noSuchPath, notFound } from '../../api/status-error.ts'
import { timestamp } from '../../base/timestamps.ts'
import { checkKind, decodeAs, type RequestBody } from '../http/body.ts'
import type { FieldValidation } from '../http/options.ts'
import { objectKey } from '../keys.ts'
import { nodeTokenProblem } from '../node-authorizer/node-token-request.ts'
import type { AnyObject, ObjectDeps } from '../objects/object-deps.ts'
import { keyOf, type WriteTarget } from '../objects/write-verb.ts'
import type { TokenSubject } from '../service-accounts/index.ts'

const TOKEN_REQUEST = { group: 'authentication.k8s.io', kind: 'TokenRequest' } as const
export const TOKEN_REQUEST_TYPE = { kind: TOKEN_REQUEST.kind, apiVersion: `${TOKEN_REQUEST.group}/v1` } as const
const RESOURCE = { group: TOKEN_REQUEST.group, plural: 'tokenrequests' }

const LIFETIME_SECONDS_DEFAULT = 3_600
const LIFETIME_SECONDS_MIN = 600
const LIFETIME_SECONDS_MAX = 2 ** 32

export interface IssuedToken {
  readonly object: TokenRequest
  /** Texts of the Warning headers. */
  readonly warnings: readonly string[]
}

/** Returns whether the target is the token of a ServiceAccount. */
export const isTokenRequest = ({
  resource,
  subresource,
}: {
  resource: Pick<WriteTarget['resource'], 'group' | 'plural'>
  subresource: string
}): boolean => subresource === 'token' && resource.plural === 'serviceaccounts' && resource.group === ''

export async function createToken(
  deps: ObjectDeps,
  target: WriteTarget,
  body: RequestBody,
  validation: FieldValidation,
): Promise<IssuedToken> {
  const { accountTokens } = deps
  if (!accountTokens) throw noSuchPath()
  checkKind(body, TOKEN_REQUEST.kind)
  const subjectText = 'TokenRequest in version "v1"'
  const { object: request, warnings } = decodeAs<TokenRequest>(body, tokenRequest, subjectText, validation)
  checkTokenRequest(target, request)

  const account = await readObject(deps, keyOf(target))
  if (!account) throw notFound(target.resource, target.name)
  const { uid } = account.metadata
  const requestedUid = request.metadata?.uid
  if (requestedUid && requestedUid !== uid) {
    const message = `the UID in the token request (${requestedUid}) does not match the UID of the service account (${uid})`
    throw conflict(RESOURCE, target.name, message)
  }
  const subject: TokenSubject = {
    namespace: target.namespace,
    serviceaccount: { name: target.name, uid },
    ...(await claimsOfBoundObject(deps, target, request)),
  }
  const { user, namespace, name: accountName } = target
  const problem = await nodeTokenProblem(
    { user, namespace, accountName, spec: request.spec },
    { authorizer: deps.authorizer, find: (kind, ...ref) => readObject(deps, objectKey(kind, ...ref)) },
  )
  if (problem) throw forbidden(target.resource, target.name, problem)
  const requestedSeconds = request.spec.expirationSeconds ?? LIFETIME_SECONDS_DEFAULT
  const lifetimeSeconds = Math.min(requestedSeconds, accountTokens.lifetimeSecondsMax)
  const { audiences: requestedAudiences = [] } = request.spec
  const audiences = requestedAudiences.length > 0 ? requestedAudiences : [...accountTokens.apiAudiences]
  const { token, expiresAtMs } = await accountTokens.issue({ subject, audiences, lifetimeSeconds })
  const isShortened = lifetimeSeconds < requestedSeconds
  return {
    object: {
      metadata: {
        ...request.metadata,
        name: target.name,
        namespace: target.namespace,
        uid,
        creationTimestamp: timestamp(deps.clock.nowMs()),
      },
      spec: { ...request.spec, audiences, expirationSeconds: lifetimeSeconds },
      status: { token, expirationTimestamp: timestamp(expiresAtMs) },
    },
    warnings: isShortened
      ? [...warnings, `requested expiration of ${requestedSeconds} seconds shortened to ${lifetimeSeconds} seconds`]
      : warnings,
  }
}

function checkTokenRequest({ name, namespace }: WriteTarget, { metadata, spec }: TokenRequest): void {
  const errors = new FieldErrors()
  if (metadata?.name && metadata.name !== name) {
    errors.invalid('metadata.name', metadata.name, 'must match the service account name if specified')
  }
  if (metadata?.namespace && metadata.namespace !== namespace) {
    errors.invalid('metadata.namespace', metadata.namespace, 'must match the service account namespace if specified')
  }
  const seconds = spec.expirationSeconds ?? LIFETIME_SECONDS_DEFAULT
  if (seconds < LIFETIME_SECONDS_MIN) {
    errors.invalid('spec.expirationSeconds', seconds, 'may not specify a duration less than 10 minutes')
  }
  if (seconds > LIFETIME_SECONDS_MAX) {
    errors.invalid('spec.expirationSeconds', seconds, 'may not specify a duration larger than 2^32 seconds')
  }
  if (errors.hasErrors) throw invalid(TOKEN_REQUEST, name, errors.list)
}

const BOUND_KINDS: readonly Kind[] = [podKind, secretKind, nodeKind]

/**
 * Returns the claims of the bound object, and of a bound pod's node. Throws if a token cannot be bound to the kind of object, if
 * the object does not exist or has another uid than requested, or if a pod has another ServiceAccount.
 */
async function claimsOfBoundObject(
  deps: ObjectDeps,
  { namespace, name: accountName }: WriteTarget,
  { spec }: TokenRequest,
): Promise<Pick<TokenSubject, 'pod' | 'secret' | 'node'>> {
  const { boundObjectRef } = spec
  if (!boundObjectRef) return {}
  const isCoreGroup = !boundObjectRef.apiVersion?.includes('/')
  const kind = isCoreGroup ? BOUND_KINDS.find((candidate) => candidate.kind === boundObjectRef.kind) : undefined
  if (!kind) {
    const type = `${boundObjectRef.apiVersion ?? ''}, Kind=${boundObjectRef.kind ?? ''}`.slice(0, 200)
    throw badRequest(`cannot bind token to object of type ${type}`)
  }
  const name = boundObjectRef.name ?? ''
  const object = await readObject(deps, objectKey(kind, kind.namespaced ? namespace : '', name))
  if (!object) throw notFound(kind, name)
  const { uid } = object.metadata
  if (kind === podKind && object.spec?.serviceAccountName !== accountName) {
    throw badRequest(
      `cannot bind token for serviceaccount ${JSON.stringify(accountName)} to pod running with different serviceaccount name.`,
    )
  }
  if (boundObjectRef.uid && boundObjectRef.uid !== uid) {
    const message = `the UID in the bound object reference (${boundObjectRef.uid}) does not match the UID in record. The object might have been deleted and then recreated`
    throw conflict(kind, name, message)
  }
  const objectClaim = { name, uid }
  if (kind === secretKind) return { secret: objectClaim }
  if (kind === nodeKind) return { node: objectClaim }
  return { pod: objectClaim, ...(await findNode(deps, object)) }
}

async function findNode(deps: ObjectDeps, { spec }: Pod): Promise<Pick<TokenSubject, 'node'>> {
  const name = spec?.nodeName
  if (!name) return {}
  const node = await readObject(deps, objectKey(nodeKind, '', name))
  return { node: node ? { name, uid: node.metadata.uid } : { name } }
}

async function readObject({ store, objects }: ObjectDeps, key: string): Promise<AnyObject> {
  const entry = await store.get(key)
  return entry && objects.decode(entry)
}
