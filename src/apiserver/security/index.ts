// Public exports of security: TLS certificates, authentication, impersonation and authorization.
export {
  type Authenticator,
  type AuthenticatorOptions,
  createAuthenticator,
  type ReloadableAuthenticator,
} from './authenticator.ts'
export { apiErrorOf, authorizeRequest } from './authorize-request.ts'
export type {
  AuthorizationAttributes,
  Authorizer,
  Decision,
  ResourceAttributes,
  Rules,
} from './authorizer.ts'
export { resolveImpersonation } from './impersonation.ts'
export { issueKeylessCa } from './keyless-ca.ts'
export { loadOrCreatePki, type Pki } from './pki.ts'
export { NO_REVOCATIONS, parseRevocations } from './revocations.ts'
export { createStaticTokens, type StaticTokens, staticTokenAuthenticator } from './static-tokens.ts'
export { type ClientCertificate, clientCertificateOf, servingTlsOptions } from './tls.ts'
export type { TokenAuthentication, TokenAuthenticator } from './token-authenticator.ts'
export { parseTokens } from './tokens.ts'
export {
  ACCOUNTS_GROUP,
  ANONYMOUS,
  AUTHENTICATED_GROUP,
  accountGroups,
  accountUser,
  accountUserName,
  MASTERS_GROUP,
  UNAUTHENTICATED_GROUP,
  type UserInfo,
  VIEWERS_GROUP,
} from './user.ts'
