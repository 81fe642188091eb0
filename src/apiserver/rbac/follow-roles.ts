// Loads roles and bindings from the store into the index and follows their changes. If the store ends the watch, the index
// keeps its state until it is loaded again.
import { RBAC_GROUP } from '../../api/kinds/rbac/rbac-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { type Entry, type Store, StoreClosedError, type Watch } from '../../store/index.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import { decodeStored } from '../objects/stored-object.ts'
import type { RoleIndex } from './role-index.ts'

export interface FollowRolesOptions {
  readonly store: Store
  readonly index: RoleIndex
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  /** Called after the index was loaded and after each change of a cluster role. */
  onClusterRoles(): void
}

const PREFIX = `${RBAC_GROUP}/`
const RELOAD_DELAY_MS = 1_000

/** Resolves when the index is loaded. Continues to follow changes until the signal is aborted. */
export async function followRoles(options: FollowRolesOptions): Promise<void> {
  const { store, index, clock, log, signal, onClusterRoles } = options
  let loadedKeys = new Set<string>()
  let watch: Watch | undefined
  signal.addEventListener('abort', () => watch?.close(), { once: true })

  async function load(): Promise<void> {
    const { entries, revision } = await store.list({ prefix: PREFIX })
    if (signal.aborted) return
    const keys = new Set(entries.map(({ key }) => key))
    for (const key of loadedKeys) if (!keys.has(key)) setObject(index, key, undefined)
    for (const entry of entries) setObject(index, entry.key, entry)
    loadedKeys = keys
    watch = store.watch({
      prefix: PREFIX,
      afterRevision: revision,
      onEvents: (events) => {
        for (const { key, entry } of events) {
          if (entry) loadedKeys.add(key)
          else loadedKeys.delete(key)
          setObject(index, key, entry)
        }
        if (events.some(({ key }) => key.startsWith(CLUSTER_ROLE_PREFIX))) onClusterRoles()
      },
      onEnd: (error) => reload(error),
    })
    onClusterRoles()
  }

  function reload(error: unknown): void {
    if (signal.aborted || error instanceof StoreClosedError) return
    log.warn({ reason: (error as Error).message }, 'the watch of roles ended; loading them again')
    clock.after(RELOAD_DELAY_MS, () => void load().catch(reload))
  }

  await load()
}

const CLUSTER_ROLE_PREFIX = `${PREFIX}clusterroles/`

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
