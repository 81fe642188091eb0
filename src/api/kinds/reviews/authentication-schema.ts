// The schemas of the review kinds of authentication.k8s.io. The API server computes the result; reviews are not stored.
import { boolean, list, map, object, opt, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

const tokenReviewSpec = object('io.k8s.api.authentication.v1.TokenReviewSpec', 'The token to verify.', {
  token: opt(1, string, 'Bearer token to verify.'),
  audiences: opt(2, list(string), 'Audiences, one of which the token must have. Default: the API server.'),
})

const userInfo = object('io.k8s.api.authentication.v1.UserInfo', 'The user of a request.', {
  username: opt(1, string, 'Name of the user.'),
  uid: opt(2, string, 'UID of the user, which does not change with the name.'),
  groups: opt(3, list(string), 'Groups of the user.'),
  extra: opt(4, map(list(string)), 'Further attributes of the user, by name.'),
})

const tokenReviewStatus = object(
  'io.k8s.api.authentication.v1.TokenReviewStatus',
  'Whether the token is valid, and its user.',
  {
    authenticated: opt(1, boolean, 'Whether the token is valid.'),
    user: opt(2, userInfo, 'User of the token.'),
    audiences: opt(4, list(string), 'The requested audiences that the token is valid for.'),
    error: opt(3, string, 'Why the token could not be verified.'),
  },
)

export const tokenReview = object('io.k8s.api.authentication.v1.TokenReview', 'Verifies a bearer token.', {
  metadata: req(1, objectMeta, 'Standard object metadata; reviews are not stored.'),
  spec: req(2, tokenReviewSpec, 'The request.'),
  status: opt(3, tokenReviewStatus, 'The result, set by the server.'),
})

const selfSubjectReviewStatus = object(
  'io.k8s.api.authentication.v1.SelfSubjectReviewStatus',
  'The user of the request.',
  {
    userInfo: opt(1, userInfo, 'The user of the request.'),
  },
)

export const selfSubjectReview = object(
  'io.k8s.api.authentication.v1.SelfSubjectReview',
  'Returns the user of the request.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata; reviews are not stored.'),
    status: opt(2, selfSubjectReviewStatus, 'The result, set by the server.'),
  },
)
