// Questions about who somebody is: answered by the API server, never stored.
import { boolean, type Infer, int64, list, map, object, opt, ptr, req, string, time } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

export const tokenReviewSpec = object('io.k8s.api.authentication.v1.TokenReviewSpec', 'The token to be judged.', {
  token: opt(1, string, 'The bearer token to be judged.'),
  audiences: opt(2, list(string), 'For whom the token is meant.'),
})

export const userInfo = object('io.k8s.api.authentication.v1.UserInfo', 'Who a request comes from.', {
  username: opt(1, string, 'Name of the user.'),
  uid: opt(2, string, 'Identity of the user that survives a change of name.'),
  groups: opt(3, list(string), 'Groups the user is in.'),
  extra: opt(4, map(list(string)), 'Further facts about the user, by name.'),
})

export const tokenReviewStatus = object(
  'io.k8s.api.authentication.v1.TokenReviewStatus',
  'Whether the token is good, and whose it is.',
  {
    authenticated: opt(1, boolean, 'True when the token is good.'),
    user: opt(2, userInfo, 'Whose token it is.'),
    audiences: opt(4, list(string), 'For whom the token is meant.'),
    error: opt(3, string, 'Why the token could not be judged.'),
  },
)

export const tokenReview = object(
  'io.k8s.api.authentication.v1.TokenReview',
  'Asks the server whom a bearer token speaks for.',
  {
    metadata: req(1, objectMeta, 'Standard metadata; reviews are answered and never stored.'),
    spec: req(2, tokenReviewSpec, 'What is asked.'),
    status: opt(3, tokenReviewStatus, 'The answer, filled in by the server.'),
  },
)

export type TokenReview = Infer<typeof tokenReview>

export const selfSubjectReviewStatus = object(
  'io.k8s.api.authentication.v1.SelfSubjectReviewStatus',
  'Who is asking.',
  {
    userInfo: opt(1, userInfo, 'The user the request was made as.'),
  },
)

export const selfSubjectReview = object(
  'io.k8s.api.authentication.v1.SelfSubjectReview',
  'Asks the server who it thinks is asking.',
  {
    metadata: req(1, objectMeta, 'Standard metadata; reviews are answered and never stored.'),
    status: opt(2, selfSubjectReviewStatus, 'The answer, filled in by the server.'),
  },
)

export type SelfSubjectReview = Infer<typeof selfSubjectReview>

export const boundObjectReference = object(
  'io.k8s.api.authentication.v1.BoundObjectReference',
  'The object a token lives and dies with.',
  {
    kind: opt(1, string, 'Kind of the object.'),
    apiVersion: opt(2, string, 'API version of the object.'),
    name: opt(3, string, 'Name of the object.'),
    uid: opt(4, string, 'UID of the object.'),
  },
)

export const tokenRequestSpec = object(
  'io.k8s.api.authentication.v1.TokenRequestSpec',
  'What kind of token is wanted.',
  {
    audiences: req(1, list(string), 'For whom the token is meant.'),
    expirationSeconds: ptr(4, int64, 'How long the token should be good.'),
    boundObjectRef: ptr(3, boundObjectReference, 'The object whose deletion ends the token.'),
    attestations: opt(5, map(list(string)), 'Claims to be included in the token.'),
  },
)

export const tokenRequestStatus = object(
  'io.k8s.api.authentication.v1.TokenRequestStatus',
  'The token that was made.',
  {
    token: req(1, string, 'The bearer token.'),
    expirationTimestamp: opt(2, time, 'When the token ends.'),
  },
)

export const tokenRequest = object(
  'io.k8s.api.authentication.v1.TokenRequest',
  'Asks for a token of a service account.',
  {
    metadata: req(1, objectMeta, 'Standard metadata; reviews are answered and never stored.'),
    spec: req(2, tokenRequestSpec, 'What is asked.'),
    status: opt(3, tokenRequestStatus, 'The answer, filled in by the server.'),
  },
)

export type TokenRequest = Infer<typeof tokenRequest>
