// The door of the API server: handle requests, listen, and the pieces main.ts wires.
export { type ApiServer, createApiServer } from './api-server.ts'
export { createBuiltIns, type FirstObject, SYSTEM_USER } from './bootstrap.ts'
export type { ApiAnswer, ApiRequest } from './exchange.ts'
export { type HttpsListener, listenHttps } from './https-listener.ts'
export { inProcessClient } from './in-process/in-process.ts'
export { BRIEF_PREFIXES, collectionPrefix, objectKey } from './keys.ts'
export { parseDeleteOptions, parseListOptions } from './options.ts'
export { parseRuntimeConfig, type Resource } from './resources.ts'
export {
  createAuthenticator,
  createBasicAuthorizer,
  loadOrCreatePki,
  type Pki,
  type UserInfo,
} from './security/index.ts'
export { COMMIT_WRITES_MAX, commitObjects } from './verbs/commit.ts'
export { deleteObject } from './verbs/delete-object.ts'
export { getObject, listObjects, selectorOf, waitForRevision } from './verbs/read-objects.ts'
export { decodeStored } from './verbs/stored-object.ts'
export { mergeFinalize } from './verbs/subresources.ts'
export { updateObject } from './verbs/update-object.ts'
export type { StreamSink } from './verbs/watch-objects.ts'
export { faceOf, type ObjectDeps, type WriteTarget, type Written } from './verbs/write-deps.ts'
export { type DescribedWrite, writeObject, writeVerbOf, writeVerbsOf } from './verbs/write-verbs.ts'
export { stowageVersion, versionInfo } from './version.ts'
