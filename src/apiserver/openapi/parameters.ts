// The query and path parameters of operations.

export interface Parameter {
  readonly name: string
  readonly in: 'query' | 'path'
  readonly type: 'string' | 'boolean' | 'integer'
  readonly doc: string
}

const query = (name: string, type: Parameter['type'], doc: string): Parameter => ({ name, in: 'query', type, doc })
const path = (name: string, doc: string): Parameter => ({ name, in: 'path', type: 'string', doc })

export const nameParameter = (kind: string): Parameter => path('name', `Name of the ${kind}.`)
export const NAMESPACE = path('namespace', 'Namespace of the objects.')
export const PRETTY = query('pretty', 'string', 'Accepted for compatibility, ignored: responses are not indented.')

const DRY_RUN = query('dryRun', 'string', 'With "All" the request is processed as usual, but nothing is stored.')
const FIELD_MANAGER = query(
  'fieldManager',
  'string',
  'Name of the client that makes the change, recorded as owner of the fields it sets: at most 128 printable ' +
    'characters. Required for apply.',
)
const FIELD_VALIDATION = query(
  'fieldValidation',
  'string',
  'Treatment of unknown and duplicate fields: Ignore drops them, Warn (the default) drops them and returns ' +
    'Warning headers, Strict rejects the request.',
)
const FORCE = query('force', 'boolean', 'For apply only: take ownership of conflicting fields instead of failing.')

export const WRITE_PARAMETERS = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION]
export const PATCH_PARAMETERS = [...WRITE_PARAMETERS, FORCE]

export const DELETE_PARAMETERS = [
  DRY_RUN,
  query('gracePeriodSeconds', 'integer', 'Seconds until the object is deleted; 0 means immediately.'),
  query('orphanDependents', 'boolean', 'Old form of propagationPolicy: true means Orphan, false Background.'),
  query(
    'propagationPolicy',
    'string',
    'Treatment of dependents: Orphan keeps them, Background deletes them later, Foreground deletes them first.',
  ),
]

const SELECTION = [
  query('continue', 'string', 'Token of the previous page of a list, to get the next page of the same state.'),
  query('fieldSelector', 'string', 'Only objects whose fields match, such as metadata.name=orders.'),
  query('labelSelector', 'string', 'Only objects whose labels match, such as app=shop,tier!=test.'),
  query(
    'limit',
    'integer',
    'Maximum number of objects. If there are more, the response has a continue token for the rest.',
  ),
  query('resourceVersion', 'string', 'Version of the requested state; see resourceVersionMatch.'),
  query('resourceVersionMatch', 'string', 'How resourceVersion is interpreted: Exact or NotOlderThan.'),
  query('sendInitialEvents', 'boolean', 'A watch starts with an event for each existing object, then a bookmark.'),
  query('timeoutSeconds', 'integer', 'Ends a watch after this time.'),
]

export const LIST_PARAMETERS = [
  query(
    'allowWatchBookmarks',
    'boolean',
    'A watch may send BOOKMARK events, which have a resourceVersion and no change.',
  ),
  ...SELECTION,
  query('watch', 'boolean', 'Returns a stream of changes instead of a list.'),
]
export const DELETE_COLLECTION_PARAMETERS = [...DELETE_PARAMETERS, ...SELECTION]
