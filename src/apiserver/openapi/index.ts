// The door of OpenAPI: the schemas and operations of everything that is served.
export { createOpenApi, type OpenApi } from './openapi.ts'
