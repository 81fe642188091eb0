// Public exports of the API server.

export { standardAdmission } from './admission/index.ts'
export { type ApiServer, type ApiServerOptions, createApiServer } from './api-server.ts'
export {
  type Audit,
  type AuditSink,
  createAudit,
  createAuditLog,
  defaultAuditPolicy,
  openRotatingFile,
  parseAuditPolicy,
} from './audit/index.ts'
export { createBuiltIns, type InitialObject, SYSTEM_USER } from './bootstrap.ts'
export {
  BOOTSTRAP_TOKEN_NAMESPACE,
  BOOTSTRAP_TOKEN_TYPE,
  certificateAdmission,
  createBootstrapTokens,
  parseTokenSecret,
  secretNameOf,
  splitToken,
  tokenSecret,
} from './certificates/index.ts'
export {
  createEncryption,
  type Encryption,
  findUndecryptable,
  formatSecretsConfiguration,
  generateKey,
  parseEncryptionConfiguration,
  rewriteStaleValues,
} from './encryption/index.ts'
export { limitEvents } from './event-limits/limit-events.ts'
export { createHealth, type Health, type HealthReader } from './health.ts'
export { createHttpsServer, type HttpsListener, listenHttps } from './http/https-listener.ts'
export type { ApiRequest, ApiResponse } from './http/messages.ts'
export { inProcessClient } from './in-process/client.ts'
export { BRIEF_HISTORY_PREFIXES, collectionPrefix, describeKey, objectKey } from './keys.ts'
export { type PublishedService, publishKubernetesService } from './kubernetes-service.ts'
export { createNodeAuthorization, NODES_GROUP, nodeUser } from './node-authorizer/index.ts'
export { decodeStored } from './objects/stored-object.ts'
export { type OperationBoard, openOperationBoard } from './operations/operation-board.ts'
export { createNodeConnections } from './pod-streams/node-connection.ts'
export { type InProcessComponent, userOf } from './rbac/component-roles.ts'
export { createBootstrapRoles, createRbac } from './rbac/index.ts'
export { parseRuntimeConfig } from './resources.ts'
export {
  type Authenticator,
  type AuthenticatorOptions,
  type Authorizer,
  createAuthenticator,
  createStaticTokens,
  issueKeylessCa,
  loadOrCreatePki,
  NO_REVOCATIONS,
  type Pki,
  parseRevocations,
  parseTokens,
  type ReloadableAuthenticator,
  type StaticTokens,
  staticTokenAuthenticator,
  type TokenAuthenticator,
} from './security/index.ts'
export {
  type AccountTokens,
  createAccountTokens,
  loadTokenKeys,
  serviceAccountAdmission,
} from './service-accounts/index.ts'
export type { FollowedClaim, ReachedStep } from './timeline/follow-steps.ts'
export { createJournal, type Journal, type JournalTransaction } from './timeline/journal.ts'
export { JOURNAL_LIMITS, maintainJournal, mergeUnmerged } from './timeline/merge-chunks.ts'
export { COMMIT_WRITES_MAX } from './verbs/commit.ts'
export { versionInfo } from './version.ts'
