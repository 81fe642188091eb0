// Public exports of discovery: its documents, and the verbs and subresources of each resource.

export { createDiscovery, type Discovery } from './discovery.ts'
export {
  type Document,
  type DocumentResponse,
  documentOf,
  documentResponse,
  headerOf,
  jsonDocument,
  lazy,
  type RequestHeaders,
} from './document.ts'
export { resourcesOf } from './legacy-discovery.ts'
export {
  findSubresource,
  type Subresource,
  subresourcesOf,
  verbsOf,
} from './subresources.ts'
