// The verbs and subresources of each resource. Discovery and OpenAPI publish them, and ../verbs/check-scope.ts rejects all
// others.
import type { Kind } from '../../api/kind.ts'
import type { Verb } from '../http/route.ts'

export interface Subresource {
  /** The last path segment: `status`. */
  readonly name: string
  readonly verbs: readonly Verb[]
  /** Kind of the request body, if it is not the object itself. */
  readonly body?: { readonly group: string; readonly version: string; readonly kind: string }
  /** Whether the subresource is a stream of a container. OpenAPI does not describe streams. */
  readonly isStream?: boolean
}

const ALL_VERBS: readonly Verb[] = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

/** The verbs of resources that do not support all of them, by plural and group. */
const RESTRICTED_VERBS: Readonly<Record<string, readonly Verb[]>> = {
  'namespaces.': ALL_VERBS.filter((verb) => verb !== 'deletecollection'),
}

const STATUS: Subresource = { name: 'status', verbs: ['get', 'patch', 'update'] }

const streamOf = (name: string, kind: string): Subresource => ({
  name,
  verbs: ['create', 'get'],
  body: { group: '', version: 'v1', kind },
  isStream: true,
})

/** The subresources other than `status`, by plural and group. */
const EXTRA_SUBRESOURCES: Readonly<Record<string, readonly Subresource[]>> = {
  'certificatesigningrequests.certificates.k8s.io': [{ name: 'approval', verbs: ['get', 'patch', 'update'] }],
  'namespaces.': [{ name: 'finalize', verbs: ['update'] }],
  'pods.': [
    streamOf('attach', 'PodAttachOptions'),
    { name: 'binding', verbs: ['create'], body: { group: '', version: 'v1', kind: 'Binding' } },
    { name: 'ephemeralcontainers', verbs: ['get', 'patch', 'update'] },
    { name: 'eviction', verbs: ['create'], body: { group: 'policy', version: 'v1', kind: 'Eviction' } },
    streamOf('exec', 'PodExecOptions'),
    { name: 'log', verbs: ['get'], isStream: true },
  ],
  'serviceaccounts.': [
    { name: 'token', verbs: ['create'], body: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' } },
  ],
  'statefulsets.apps': [
    { name: 'scale', verbs: ['get', 'patch', 'update'], body: { group: 'autoscaling', version: 'v1', kind: 'Scale' } },
  ],
}

export function verbsOf(kind: Kind): readonly Verb[] {
  if (kind.isReview) return ['create']
  if (kind.isForeign || kind.isVolatile) return ['get', 'list', 'watch']
  return RESTRICTED_VERBS[keyOf(kind)] ?? ALL_VERBS
}

/** Returns the subresources sorted by name. */
export function subresourcesOf(kind: Kind): readonly Subresource[] {
  const extra = EXTRA_SUBRESOURCES[keyOf(kind)] ?? []
  return kind.status ? [...extra, STATUS] : extra // no kind with a status has an extra subresource that sorts after it
}

export const findSubresource = (kind: Kind, name: string): Subresource | undefined =>
  subresourcesOf(kind).find((subresource) => subresource.name === name)

const keyOf = ({ plural, group }: Kind): string => `${plural}.${group}`
