// The types around objects rather than of them: list metadata, statuses, watch events; and which kinds they are known as.
// Declared like kinds, so that they are published the same way.

import { binding } from '../../api/kinds/pod/pod-schema.ts'
import { deleteOptions, eviction } from '../../api/kinds/shared/delete-options-schema.ts'
import { int32, int64, list, type ObjectType, object, opt, ptr, rawJson, req, string } from '../../api/schema.ts'

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1'

export const listMeta = object(`${META}.ListMeta`, 'What is known about a list as a whole.', {
  selfLink: opt(1, string, 'No longer filled in.'),
  resourceVersion: opt(2, string, 'Version of the state that the list shows; a watch can continue from it.'),
  continue: opt(3, string, 'Present when there is more: send it back to get the next part of the same state.'),
  remainingItemCount: ptr(4, int64, 'How many items follow in later parts, where that is known.'),
})

const statusCause = object(`${META}.StatusCause`, 'One of the reasons why a request failed.', {
  reason: opt(1, string, 'The reason in one word, for programs.'),
  message: opt(2, string, 'The reason in words, for people.'),
  field: opt(3, string, 'Path of the field at fault, such as "spec.resources.requests[storage]".'),
})

const statusDetails = object(`${META}.StatusDetails`, 'What a failure was about.', {
  name: opt(1, string, 'Name of the object, where there is one.'),
  group: opt(2, string, 'API group of the object.'),
  kind: opt(3, string, 'Kind or resource of the object.'),
  uid: opt(6, string, 'Unique ID of the object.'),
  causes: opt(4, list(statusCause), 'Everything that was wrong.', { list: 'atomic' }),
  retryAfterSeconds: opt(5, int32, 'Wait this long before trying again.'),
})

export const status = object(`${META}.Status`, 'How a request ended when it does not answer with an object.', {
  metadata: opt(1, listMeta, 'Carries a new continue token when an old one has expired.'),
  status: opt(2, string, 'Success or Failure.'),
  message: opt(3, string, 'What happened, in words for people.'),
  reason: opt(4, string, 'What happened, in one word for programs.'),
  details: ptr(5, statusDetails, 'What the failure was about.', { atomic: true }),
  code: opt(6, int32, 'The HTTP status code of this answer.'),
})

export const watchEvent = object(`${META}.WatchEvent`, 'One change, as a watch tells it.', {
  type: req(1, string, 'ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.'),
  object: req(2, rawJson, 'The object after the change (its last state when deleted), or a Status for ERROR.'),
})

export interface GroupVersionKind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

export interface Envelope {
  readonly kinds: readonly GroupVersionKind[]
  /** Whether it says its apiVersion and kind, as everything does but watch events. */
  readonly saysKind: boolean
}

/** As which kinds an envelope type is known. Delete options and watch events belong to every group version. */
export function envelopeOf(
  type: ObjectType,
  groupVersions: readonly Omit<GroupVersionKind, 'kind'>[],
): Envelope | undefined {
  const everywhere = (kind: string) => groupVersions.map(({ group, version }) => ({ group, version, kind }))
  if (type === deleteOptions) return { kinds: everywhere('DeleteOptions'), saysKind: true }
  if (type === watchEvent) return { kinds: everywhere('WatchEvent'), saysKind: false }
  if (type === status) return { kinds: [{ group: '', version: 'v1', kind: 'Status' }], saysKind: true }
  if (type === binding) return { kinds: [{ group: '', version: 'v1', kind: 'Binding' }], saysKind: true }
  if (type === eviction) return { kinds: [{ group: 'policy', version: 'v1', kind: 'Eviction' }], saysKind: true }
  return undefined
}
