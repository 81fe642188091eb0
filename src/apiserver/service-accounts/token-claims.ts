// The claims of a ServiceAccount token, in the Kubernetes form, and the user that they describe.
import { accountGroups, accountUserName, type UserInfo, withAuthenticationGroup } from '../security/user.ts'

export interface ObjectClaim {
  readonly name: string
  readonly uid: string
}

/** The objects of a token. A pod-bound token also names the pod's node. */
export interface TokenSubject {
  readonly namespace: string
  readonly serviceaccount: ObjectClaim
  readonly pod?: ObjectClaim
  readonly secret?: ObjectClaim
  /** The uid is absent if a pod's node does not exist. */
  readonly node?: { readonly name: string; readonly uid?: string }
}

export interface TokenClaims {
  readonly iss: string
  readonly sub: string
  readonly aud: readonly string[]
  /** Times are in seconds. */
  readonly iat: number
  readonly nbf: number
  readonly exp: number
  readonly jti: string
  readonly 'kubernetes.io': TokenSubject
}

const EXTRA = 'authentication.kubernetes.io'

export function userOfClaims({ jti, 'kubernetes.io': subject }: TokenClaims): UserInfo {
  const { namespace, serviceaccount, pod, node } = subject
  return withAuthenticationGroup({
    name: accountUserName(namespace, serviceaccount.name),
    uid: serviceaccount.uid,
    groups: accountGroups(namespace),
    extra: {
      [`${EXTRA}/credential-id`]: [`JTI=${jti}`],
      ...(pod && { [`${EXTRA}/pod-name`]: [pod.name], [`${EXTRA}/pod-uid`]: [pod.uid] }),
      ...(node && { [`${EXTRA}/node-name`]: [node.name] }),
      ...(node?.uid && { [`${EXTRA}/node-uid`]: [node.uid] }),
    },
  })
}
