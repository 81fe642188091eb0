// The query and path parameters of operations.

export interface Parameter {
  readonly name: string
  readonly in: 'query' | 'path'
  readonly type: 'string' | 'boolean' | 'integer'
  readonly doc: string
}

const queryParameter = (name: string, type: Parameter['type'], doc: string): Parameter => ({
  name,
  in: 'query',
  type,
  doc,
})
const pathParameter = (name: string, doc: string): Parameter => ({ name, in: 'path', type: 'string', doc })

export const nameParameter = (kind: string): Parameter => pathParameter('name', `Name of the ${kind}.`)
export const NAMESPACE = pathParameter('namespace', 'Namespace of the objects.')
export const PRETTY = queryParameter(
  'pretty',
  'string',
  'Accepted for compatibility, ignored: responses are not indented.',
)

const DRY_RUN = queryParameter(
  'dryRun',
  'string',
  'With "All" the request is processed as usual, but nothing is stored.',
)
const FIELD_MANAGER = queryParameter(
  'fieldManager',
  'string',
  'Name of the client that makes the change, recorded as owner of the fields it sets: at most 128 printable ' +
    'characters. Required for apply.',
)
const FIELD_VALIDATION = queryParameter(
  'fieldValidation',
  'string',
  'Treatment of unknown and duplicate fields: Ignore drops them, Warn (the default) drops them and returns ' +
    'Warning headers, Strict rejects the request.',
)
const FORCE = queryParameter(
  'force',
  'boolean',
  'For apply only: take ownership of conflicting fields instead of failing.',
)

export const WRITE_PARAMETERS = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION]
export const PATCH_PARAMETERS = [...WRITE_PARAMETERS, FORCE]

export const DELETE_PARAMETERS = [
  DRY_RUN,
  queryParameter('gracePeriodSeconds', 'integer', 'For pods: seconds until the pod is deleted; 0 means immediately.'),
  queryParameter(
    'orphanDependents',
    'boolean',
    'Deprecated: use propagationPolicy. true means Orphan, false means Background.',
  ),
  queryParameter(
    'propagationPolicy',
    'string',
    'Treatment of dependents: Orphan keeps them, Background deletes them later, Foreground deletes them first.',
  ),
]

const LIST_OPTIONS = [
  queryParameter('continue', 'string', 'Token of the previous page of a list, to get the next page of the same state.'),
  queryParameter('fieldSelector', 'string', 'Only objects whose fields match, such as metadata.name=orders.'),
  queryParameter('labelSelector', 'string', 'Only objects whose labels match, such as app=shop,tier!=test.'),
  queryParameter(
    'limit',
    'integer',
    'Maximum number of objects. If there are more, the response has a continue token for the rest.',
  ),
  queryParameter('resourceVersion', 'string', 'Version of the requested state; see resourceVersionMatch.'),
  queryParameter('resourceVersionMatch', 'string', 'How resourceVersion is interpreted: Exact or NotOlderThan.'),
  queryParameter(
    'sendInitialEvents',
    'boolean',
    'For a watch with resourceVersionMatch=NotOlderThan: start with an ADDED event for each existing object, then a ' +
      'bookmark if allowWatchBookmarks is true.',
  ),
  queryParameter('timeoutSeconds', 'integer', 'Ends a watch after this time.'),
]

export const LIST_PARAMETERS = [
  queryParameter(
    'allowWatchBookmarks',
    'boolean',
    'A watch may send BOOKMARK events, which have a resourceVersion and no change.',
  ),
  ...LIST_OPTIONS,
  queryParameter('watch', 'boolean', 'Returns a stream of changes instead of a list.'),
]
export const DELETE_COLLECTION_PARAMETERS = [...DELETE_PARAMETERS, ...LIST_OPTIONS]
