// Public exports of OpenAPI.
export { createOpenApi, type OpenApi } from './openapi.ts'
