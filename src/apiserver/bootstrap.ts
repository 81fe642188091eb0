// What exists before the first client comes: the built-in namespaces, and on a new store whatever it is to begin with.
// Safe to run at every start and by several servers at once.
import type { Kind, KubeObject } from '../api/kind.ts'
import { namespaceKind } from '../api/kinds/namespace/namespace.ts'
import { ApiError } from '../api/status-error.ts'
import { BUILT_IN_NAMESPACES } from './admission/index.ts'
import { objectKey } from './keys.ts'
import type { ObjectDeps } from './objects/write-deps.ts'
import type { UserInfo } from './security/index.ts'
import { createObject } from './verbs/create.ts'

/** Who the server is when it acts on its own behalf. */
export const SYSTEM_USER: UserInfo = { name: 'system:apiserver', groups: ['system:masters'] }

/** An object that a new store begins with, and that its owner may delete for good. */
export interface FirstObject {
  readonly kind: Kind
  readonly object: KubeObject
}

/** The namespaces come last: while they are missing, the store is new, also after a crash half way. */
export async function createBuiltIns(deps: ObjectDeps, first: readonly FirstObject[] = []): Promise<void> {
  const isNew = (await deps.store.get(objectKey(namespaceKind, '', LAST_NAMESPACE))) === undefined
  if (isNew) await Promise.all(first.map(({ kind, object }) => createUnlessThere(deps, kind, object)))
  const others = BUILT_IN_NAMESPACES.filter((name) => name !== LAST_NAMESPACE)
  await Promise.all(others.map((name) => createUnlessThere(deps, namespaceKind, { metadata: { name } })))
  await createUnlessThere(deps, namespaceKind, { metadata: { name: LAST_NAMESPACE } })
}

const LAST_NAMESPACE = 'default'

async function createUnlessThere(deps: ObjectDeps, kind: Kind, object: KubeObject): Promise<void> {
  const resource = deps.resources.preferred(kind.group, kind.plural)
  if (!resource) return
  const target = { resource, namespace: '', name: '', subresource: '', user: SYSTEM_USER, dryRun: false }
  try {
    await createObject(deps, target, object)
  } catch (error) {
    if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error
  }
}
