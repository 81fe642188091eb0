// The door of the API server: handle requests, listen, and the pieces main.ts wires.
export { type ApiServer, createApiServer } from './api-server.ts'
export { createBuiltIns, type FirstObject, SYSTEM_USER } from './bootstrap.ts'
export type { ApiAnswer, ApiRequest } from './http/exchange.ts'
export { type HttpsListener, listenHttps } from './http/https-listener.ts'
export { parseDeleteOptions, parseListOptions } from './http/options.ts'
export { inProcessClient } from './in-process/client.ts'
export { BRIEF_PREFIXES, collectionPrefix, objectKey } from './keys.ts'
export { decodeStored } from './objects/stored-object.ts'
export { faceOf, type ObjectDeps, type WriteTarget, type Written } from './objects/write-deps.ts'
export { parseRuntimeConfig, type Resource } from './resources.ts'
export {
  createAuthenticator,
  createBasicAuthorizer,
  loadOrCreatePki,
  type Pki,
  type UserInfo,
} from './security/index.ts'
export { mergeFinalize } from './verbs/bind.ts'
export { COMMIT_WRITES_MAX, commitObjects } from './verbs/commit.ts'
export { deleteObject } from './verbs/delete.ts'
export { type DescribedWrite, writeObject, writeVerbOf, writeVerbsOf } from './verbs/execute.ts'
export { getObject, listObjects, selectorOf, waitForRevision } from './verbs/list.ts'
export { updateObject } from './verbs/update.ts'
export type { StreamSink } from './verbs/watch.ts'
export { stowageVersion, versionInfo } from './version.ts'
