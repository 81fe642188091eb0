// The types that contain objects or describe a request's result: list metadata, Status and watch events. They are
// declared like kinds, so that schemas.ts publishes them in the same way.
import { binding } from '../../api/kinds/pod/pod-schema.ts'
import { tokenRequest } from '../../api/kinds/service-account/token-request-schema.ts'
import { deleteOptions, eviction } from '../../api/kinds/shared/delete-options-schema.ts'
import { int32, int64, list, type ObjectType, object, opt, ptr, rawJson, req, string } from '../../api/schema.ts'

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1'

export const listMeta = object(`${META}.ListMeta`, 'Metadata of a list.', {
  selfLink: opt(1, string, 'No longer set.'),
  resourceVersion: opt(2, string, 'Version of the state that the list shows. A watch can start from it.'),
  continue: opt(3, string, 'Present if the list is not complete. Send it back to get the next page of the same state.'),
  remainingItemCount: ptr(4, int64, 'Number of items in later pages, if known.'),
})

const statusCause = object(`${META}.StatusCause`, 'One of the reasons why a request failed.', {
  reason: opt(1, string, 'The reason in one word, for programs.'),
  message: opt(2, string, 'A human-readable description of the reason.'),
  field: opt(3, string, 'Path of the field at fault, such as "spec.resources.requests[storage]".'),
})

const statusDetails = object(`${META}.StatusDetails`, 'The object and the causes of a failure.', {
  name: opt(1, string, 'Name of the object, if the request was about one.'),
  group: opt(2, string, 'API group of the object.'),
  kind: opt(3, string, 'Kind or resource of the object.'),
  uid: opt(6, string, 'Unique ID of the object.'),
  causes: opt(4, list(statusCause), 'All causes of the failure.', { list: 'atomic' }),
  retryAfterSeconds: opt(5, int32, 'Seconds to wait before trying again.'),
})

export const status = object(`${META}.Status`, 'The outcome of a request that does not return an object.', {
  metadata: opt(1, listMeta, 'Has a new continue token if the one sent has expired.'),
  status: opt(2, string, 'Success or Failure.'),
  message: opt(3, string, 'A human-readable description of the outcome.'),
  reason: opt(4, string, 'The outcome in one word, for programs.'),
  details: ptr(5, statusDetails, 'Details of a failure.', { atomic: true }),
  code: opt(6, int32, 'The HTTP status code of the response.'),
})

export const watchEvent = object(`${META}.WatchEvent`, 'One event of a watch.', {
  type: req(1, string, 'ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.'),
  object: req(
    2,
    rawJson,
    'The object after the change, or its last state for DELETED. For BOOKMARK, only its kind and resourceVersion are set. ' +
      'For ERROR, a Status.',
  ),
})

export interface GroupVersionKind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

export interface Envelope {
  readonly kinds: readonly GroupVersionKind[]
  /** Whether the type has apiVersion and kind. Watch events have neither. */
  readonly hasTypeMeta: boolean
}

/** Returns the kinds of an envelope type. DeleteOptions and WatchEvent are published in every group version. */
export function envelopeOf(
  type: ObjectType,
  groupVersions: readonly Omit<GroupVersionKind, 'kind'>[],
): Envelope | undefined {
  const inEveryVersion = (kind: string) => groupVersions.map(({ group, version }) => ({ group, version, kind }))
  if (type === deleteOptions) return { kinds: inEveryVersion('DeleteOptions'), hasTypeMeta: true }
  if (type === watchEvent) return { kinds: inEveryVersion('WatchEvent'), hasTypeMeta: false }
  if (type === status) return { kinds: [{ group: '', version: 'v1', kind: 'Status' }], hasTypeMeta: true }
  if (type === binding) return { kinds: [{ group: '', version: 'v1', kind: 'Binding' }], hasTypeMeta: true }
  if (type === eviction) return { kinds: [{ group: 'policy', version: 'v1', kind: 'Eviction' }], hasTypeMeta: true }
  if (type === tokenRequest) {
    return { kinds: [{ group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' }], hasTypeMeta: true }
  }
  return undefined
}
