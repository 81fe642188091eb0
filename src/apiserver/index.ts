// The door of the API server: handle requests, listen, and the pieces main.ts wires.
export { type ApiServer, createApiServer } from './api-server.ts'
export { createBuiltIns, type FirstObject, SYSTEM_USER } from './bootstrap.ts'
export { COMMIT_WRITES_MAX, commitObjects } from './commit.ts'
export { deleteObject } from './delete-object.ts'
export type { ApiAnswer, ApiRequest } from './exchange.ts'
export { type HttpsListener, listenHttps } from './https-listener.ts'
export { inProcessClient } from './in-process/in-process.ts'
export { BRIEF_PREFIXES, collectionPrefix, objectKey } from './keys.ts'
export { parseDeleteOptions, parseListOptions } from './options.ts'
export { getObject, listObjects, selectorOf, waitForRevision } from './read-objects.ts'
export { parseRuntimeConfig, type Resource } from './resources.ts'
export {
  createAuthenticator,
  createBasicAuthorizer,
  loadOrCreatePki,
  type Pki,
  type UserInfo,
} from './security/index.ts'
export { decodeStored } from './stored-object.ts'
export { mergeFinalize } from './subresources.ts'
export { updateObject } from './update-object.ts'
export { stowageVersion, versionInfo } from './version.ts'
export type { StreamSink } from './watch-objects.ts'
export { faceOf, type ObjectDeps, type WriteTarget, type Written } from './write-deps.ts'
export { type DescribedWrite, writeObject, writeVerbOf, writeVerbsOf } from './write-verbs.ts'
