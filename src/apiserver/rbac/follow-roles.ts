// Loads roles and bindings from the store into the index and follows their changes.
import { RBAC_GROUP } from '../../api/kinds/rbac/rbac-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Entry, Store } from '../../store/index.ts'
import { followStore } from '../follow-store.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import { decodeStored } from '../objects/stored-object.ts'
import type { RoleIndex } from './role-index.ts'

export interface FollowRolesOptions {
  readonly store: Store
  readonly index: RoleIndex
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  /** Called after the index was loaded and after each change to a cluster role. */
  onClusterRoles(): void
}

const PREFIX = `${RBAC_GROUP}/`
const CLUSTER_ROLE_PREFIX = `${PREFIX}clusterroles/`

/** Resolves when the index is loaded. Continues to follow changes until the signal is aborted. */
export function followRoles({ index, onClusterRoles, ...options }: FollowRolesOptions): Promise<void> {
  return followStore({
    ...options,
    prefix: PREFIX,
    description: 'roles',
    onEntry: (key, entry) => setObject(index, key, entry),
    onApplied: (changedKeys) => {
      if (!changedKeys || changedKeys.some((key) => key.startsWith(CLUSTER_ROLE_PREFIX))) onClusterRoles()
    },
  })
}

function setObject(index: RoleIndex, key: string, entry: Entry | undefined): void {
  const [plural, ...path] = key.slice(PREFIX.length).split('/')
  const object: AnyObject = entry && decodeStored(entry)
  const name = path.at(-1)!
  const namespace = path[0]!
  if (plural === 'clusterroles') index.setClusterRole(name, object)
  else if (plural === 'roles') index.setRole(namespace, name, object)
  else if (plural === 'clusterrolebindings') index.setClusterRoleBinding(name, object)
  else index.setRoleBinding(namespace, name, object)
}
