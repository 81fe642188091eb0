// Public exports of security: TLS certificates, authentication, impersonation and authorization.
export { type Authentication, type Authenticator, type Credentials, createAuthenticator } from './authenticate.ts'
export type {
  AuthorizationAttributes,
  Authorizer,
  Decision,
  NonResourceAttributes,
  ResourceAttributes,
} from './authorize.ts'
export { createBasicAuthorizer } from './basic-authorizer.ts'
export { forbidden, type RejectionStatus, unauthorized } from './errors.ts'
export { type DistinctHeaders, type Impersonation, resolveImpersonation } from './impersonate.ts'
export { type ClientCredential, loadOrCreatePki, type Pki } from './pki.ts'
export { type ClientCertificate, clientCertificateOf, servingTlsOptions } from './tls.ts'
export type { TokenRecord } from './tokens.ts'
export { ANONYMOUS, type UserInfo } from './user.ts'
