// The door of discovery: what is served, told to clients.
export {
  type Answer,
  answerWith,
  type Document,
  documentOf,
  headerOf,
  jsonDocument,
  once,
  type RequestHeaders,
} from './answer.ts'
export { createDiscovery, type Discovery } from './discovery.ts'
export { resourcesOf } from './legacy.ts'
export {
  EXTRA_SUBRESOURCES,
  findSubresource,
  type Subresource,
  subresourcesOf,
  verbsOf,
} from './subresources.ts'
