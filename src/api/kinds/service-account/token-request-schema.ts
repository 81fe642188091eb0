// The schema of TokenRequest, the body of serviceaccounts/token. The server issues the token; nothing is stored.
import { type Infer, int64, list, object, opt, ptr, req, string, time } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

const GROUP = 'io.k8s.api.authentication.v1'

const boundObjectReference = object(
  `${GROUP}.BoundObjectReference`,
  'The object that the token is bound to: the token is valid only as long as the object exists.',
  {
    kind: opt(1, string, 'Kind of the object: Pod, Secret or Node.'),
    apiVersion: opt(2, string, 'API version of the object.'),
    name: opt(3, string, 'Name of the object.'),
    uid: opt(4, string, 'UID of the object; the request fails if the object has another one.'),
  },
)

const tokenRequestSpec = object(`${GROUP}.TokenRequestSpec`, 'The requested token.', {
  audiences: req(1, list(string), 'Intended recipients of the token. Default: the API server.', { list: 'atomic' }),
  expirationSeconds: ptr(4, int64, 'Requested lifetime; the server may issue a token with another one. Default: 1 h.'),
  boundObjectRef: ptr(3, boundObjectReference, 'Object that the token is bound to. Default: the ServiceAccount alone.'),
})

const tokenRequestStatus = object(`${GROUP}.TokenRequestStatus`, 'The issued token.', {
  token: req(1, string, 'The token, a signed JWT.'),
  expirationTimestamp: req(2, time, 'Time at which the token expires.'),
})

export const tokenRequest = object(`${GROUP}.TokenRequest`, 'Requests a token of a ServiceAccount.', {
  metadata: opt(
    1,
    objectMeta,
    'Name and namespace of the ServiceAccount. A UID, if set, must be that of the ServiceAccount.',
  ),
  spec: req(2, tokenRequestSpec, 'The requested token.'),
  status: opt(3, tokenRequestStatus, 'The issued token, set by the server.'),
})

export type TokenRequest = Infer<typeof tokenRequest>
