// Builds the Swagger 2 document of all served resources, which kubectl up to 1.28 and some user interfaces request.
import type { Resources } from '../resources.ts'
import { swagger2 } from './dialect.ts'
import { type Operation, type PathItem, pathItems, RESPONSE_MEDIA, STATUS_TEXT, STREAM_MEDIA } from './operations.ts'
import type { Parameter } from './parameters.ts'
import { createSchemas } from './schemas.ts'

export function documentV2(resources: Resources): object {
  const groupVersions = resources.groups.flatMap(({ group, versions }) =>
    versions.map((version) => ({ group, version })),
  )
  const schemas = createSchemas({ dialect: swagger2, groupVersions })
  const paths = groupVersions
    .flatMap(({ group, version }) => pathItems(resources, group, version, schemas))
    .map((item) => [item.path, pathOf(item)])
  return {
    swagger: '2.0',
    info: { title: 'Stowage', version: 'unversioned' },
    paths: Object.fromEntries(paths),
    definitions: schemas.all(),
    securityDefinitions: {
      BearerToken: { type: 'apiKey', name: 'authorization', in: 'header', description: 'Bearer token' },
    },
    security: [{ BearerToken: [] }],
  }
}

const pathOf = ({ parameters, operations }: PathItem) => ({
  ...Object.fromEntries(Object.entries(operations).map(([method, operation]) => [method, operationOf(operation)])),
  parameters: parameters.map(parameterOf),
})

function operationOf({ id, doc, tag, action, gvk, parameters, body, responses, streams }: Operation) {
  const responseEntries = Object.entries(responses).map(([code, schema]) => [
    code,
    { description: STATUS_TEXT[Number(code)], schema: swagger2.ref(schema) },
  ])
  return {
    tags: [tag],
    description: doc,
    operationId: id,
    produces: streams ? [...RESPONSE_MEDIA, STREAM_MEDIA] : RESPONSE_MEDIA,
    consumes: body?.media ?? ['*/*'],
    parameters: [
      ...(body
        ? [
            {
              name: 'body',
              in: 'body',
              ...(body.required ? { required: true } : {}),
              schema: swagger2.ref(body.schema),
            },
          ]
        : []),
      ...parameters.map(parameterOf),
    ],
    responses: { ...Object.fromEntries(responseEntries), 401: { description: 'Unauthorized' } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': gvk,
  }
}

const parameterOf = ({ name, in: location, type, doc }: Parameter) => ({
  name,
  in: location,
  description: doc,
  ...(location === 'path' ? { required: true } : {}),
  type,
  uniqueItems: true,
})
