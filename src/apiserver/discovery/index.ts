// Public names of discovery: which resources, verbs and subresources the server has.

export { createDiscovery, type Discovery } from './discovery.ts'
export {
  type Document,
  type DocumentResponse,
  documentOf,
  documentResponse,
  headerOf,
  jsonDocument,
  once,
  type RequestHeaders,
} from './document.ts'
export { resourcesOf } from './legacy.ts'
export {
  EXTRA_SUBRESOURCES,
  findSubresource,
  type Subresource,
  subresourcesOf,
  verbsOf,
} from './subresources.ts'
