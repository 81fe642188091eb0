// Builds the OpenAPI 3 document of one group version.
import type { Resources } from '../resources.ts'
import { openApi3 } from './dialect.ts'
import { type Operation, type PathItem, pathItems, RESPONSE_MEDIA, STATUS_TEXT, STREAM_MEDIA } from './operations.ts'
import type { Parameter } from './parameters.ts'
import { createSchemas } from './schemas.ts'

export function documentV3(resources: Resources, group: string, version: string): object {
  const schemas = createSchemas({ dialect: openApi3, groupVersions: [{ group, version }] })
  const paths = pathItems(resources, group, version, schemas).map((item) => [item.path, pathOf(item)])
  return {
    openapi: '3.0.0',
    info: { title: 'Stowage', version: 'unversioned' },
    paths: Object.fromEntries(paths),
    components: {
      schemas: schemas.all(),
      securitySchemes: {
        BearerToken: { type: 'apiKey', name: 'authorization', in: 'header', description: 'Bearer token' },
      },
    },
  }
}

const pathOf = ({ parameters, operations }: PathItem) => ({
  ...Object.fromEntries(Object.entries(operations).map(([method, operation]) => [method, operationOf(operation)])),
  parameters: parameters.map(parameterOf),
})

function operationOf({ id, doc, tag, action, gvk, parameters, body, responses, streams }: Operation) {
  const media = streams ? [...RESPONSE_MEDIA, STREAM_MEDIA] : RESPONSE_MEDIA
  const responseEntries = Object.entries(responses).map(([code, schema]) => [
    code,
    { description: STATUS_TEXT[Number(code)], content: contentOf(media, schema) },
  ])
  return {
    tags: [tag],
    description: doc,
    operationId: id,
    ...(parameters.length > 0 ? { parameters: parameters.map(parameterOf) } : {}),
    ...(body
      ? { requestBody: { content: contentOf(body.media, body.schema), ...(body.required ? { required: true } : {}) } }
      : {}),
    responses: { ...Object.fromEntries(responseEntries), 401: { description: 'Unauthorized' } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': gvk,
  }
}

const contentOf = (media: readonly string[], schema: string) =>
  Object.fromEntries(media.map((type) => [type, { schema: openApi3.ref(schema) }]))

const parameterOf = ({ name, in: location, type, doc }: Parameter) => ({
  name,
  in: location,
  description: doc,
  ...(location === 'path' ? { required: true } : {}),
  schema: { type, uniqueItems: true },
})
