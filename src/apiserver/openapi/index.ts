// Public names of OpenAPI: the documents that describe all served resources.
export { createOpenApi, type OpenApi } from './openapi.ts'
