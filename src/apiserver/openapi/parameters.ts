// The query and path parameters that operations take, described once.

export interface Parameter {
  readonly name: string
  readonly in: 'query' | 'path'
  readonly type: 'string' | 'boolean' | 'integer'
  readonly doc: string
}

const query = (name: string, type: Parameter['type'], doc: string): Parameter => ({ name, in: 'query', type, doc })
const path = (name: string, doc: string): Parameter => ({ name, in: 'path', type: 'string', doc })

export const nameParameter = (kind: string): Parameter => path('name', `Name of the ${kind}.`)
export const NAMESPACE = path('namespace', 'Namespace in which the objects live.')
export const PRETTY = query('pretty', 'string', 'With "true" the answer is indented for people.')

const DRY_RUN = query(
  'dryRun',
  'string',
  'With "All" everything is checked and answered as usual, but nothing is stored.',
)
const FIELD_MANAGER = query(
  'fieldManager',
  'string',
  'Who makes the change: at most 128 printable characters, remembered with the fields it sets. Apply needs it.',
)
const FIELD_VALIDATION = query(
  'fieldValidation',
  'string',
  'What to do about unknown and duplicate fields: Ignore drops them, Warn (the default) drops them and says so in ' +
    'Warning headers, Strict refuses the request.',
)
const FORCE = query('force', 'boolean', 'For apply only: take over fields that others own instead of failing.')

export const WRITE_PARAMETERS = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION]
export const PATCH_PARAMETERS = [...WRITE_PARAMETERS, FORCE]

export const DELETE_PARAMETERS = [
  DRY_RUN,
  query('gracePeriodSeconds', 'integer', 'How long the object may take to go; 0 means at once.'),
  query('orphanDependents', 'boolean', 'Old form of propagationPolicy: true means Orphan, false Background.'),
  query(
    'propagationPolicy',
    'string',
    'What becomes of the dependents: Orphan leaves them, Background deletes them later, Foreground deletes them first.',
  ),
]

const SELECTION = [
  query('continue', 'string', 'Token from the previous part of a list, to get the next part of the same state.'),
  query('fieldSelector', 'string', 'Only objects whose fields match, such as metadata.name=orders.'),
  query('labelSelector', 'string', 'Only objects whose labels match, such as app=shop,tier!=test.'),
  query('limit', 'integer', 'At most this many objects; the answer then carries a continue token for the rest.'),
  query('resourceVersion', 'string', 'Version of the state that is wanted; see resourceVersionMatch.'),
  query('resourceVersionMatch', 'string', 'How resourceVersion is meant: Exact or NotOlderThan.'),
  query('sendInitialEvents', 'boolean', 'A watch begins with an event for each object there is, then a bookmark.'),
  query('timeoutSeconds', 'integer', 'Ends the request after this time, whatever happens.'),
]

export const LIST_PARAMETERS = [
  query('allowWatchBookmarks', 'boolean', 'A watch may send BOOKMARK events that carry a version and no change.'),
  ...SELECTION,
  query('watch', 'boolean', 'Answers with a stream of changes instead of a list.'),
]
export const DELETE_COLLECTION_PARAMETERS = [...DELETE_PARAMETERS, ...SELECTION]
