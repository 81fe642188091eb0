// Public exports of security: TLS certificates, authentication, impersonation and authorization.
export { type Authenticator, createAuthenticator } from './authenticate.ts'
export type {
  AuthorizationAttributes,
  Authorizer,
  Decision,
  ResourceAttributes,
} from './authorize.ts'
export { createBasicAuthorizer } from './basic-authorizer.ts'
export { forbidden, type RejectionStatus } from './errors.ts'
export { resolveImpersonation } from './impersonate.ts'
export { issueKeylessCa } from './keyless-ca.ts'
export { loadOrCreatePki, type Pki } from './pki.ts'
export { type ClientCertificate, clientCertificateOf, servingTlsOptions } from './tls.ts'
export type { UserInfo } from './user.ts'
