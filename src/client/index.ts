// The door of the client library.
export { type Cache, createCache } from './cache.ts'
export type { Client } from './client.ts'
export { inProcessClient } from './in-process.ts'
