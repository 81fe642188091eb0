// The claims of a token in a Secret of type kubernetes.io/service-account-token, in the Kubernetes form. Such a
// token has neither an audience nor an expiration: it is valid as long as the account exists and the Secret contains
// the token.
import { createHash } from 'node:crypto'
import { accountGroups, accountUserName, type UserInfo, withAuthenticationGroup } from '../security/user.ts'
import type { ObjectClaim } from './token-claims.ts'

/** The account of the token, and the name of the Secret, not its UID: the token is valid again in a recreated Secret. */
export interface SecretTokenSubject {
  readonly namespace: string
  readonly serviceaccount: ObjectClaim
  readonly secretName: string
}

const ISSUER = 'kubernetes/serviceaccount'
const CLAIM_PREFIX = 'kubernetes.io/serviceaccount'

export const secretTokenClaims = ({ namespace, serviceaccount, secretName }: SecretTokenSubject) => ({
  iss: ISSUER,
  [`${CLAIM_PREFIX}/namespace`]: namespace,
  [`${CLAIM_PREFIX}/secret.name`]: secretName,
  [`${CLAIM_PREFIX}/service-account.name`]: serviceaccount.name,
  [`${CLAIM_PREFIX}/service-account.uid`]: serviceaccount.uid,
  sub: accountUserName(namespace, serviceaccount.name),
})

/** Returns undefined if the claims are not those of a token in a Secret. */
export function subjectOfSecretToken(claims: Readonly<Record<string, unknown>>): SecretTokenSubject | undefined {
  const [namespace, secretName, name, uid] = ['namespace', 'secret.name', 'service-account.name', 'service-account.uid']
    .map((key) => claims[`${CLAIM_PREFIX}/${key}`])
    .map((value) => (typeof value === 'string' ? value : ''))
  if (claims.iss !== ISSUER || !namespace || !secretName || !name || !uid) return undefined
  if (claims.sub !== accountUserName(namespace, name)) return undefined
  return { namespace, secretName, serviceaccount: { name, uid } }
}

export const userOfSecretToken = ({ namespace, serviceaccount }: SecretTokenSubject): UserInfo =>
  withAuthenticationGroup({
    name: accountUserName(namespace, serviceaccount.name),
    uid: serviceaccount.uid,
    groups: accountGroups(namespace),
  })

/** Returns the form in which indexes store a token. */
export const hashToken = (token: string): string => createHash('sha256').update(token).digest('base64')
