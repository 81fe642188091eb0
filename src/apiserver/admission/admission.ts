// The admission chain that every write passes inside its transaction. A plugin may change the draft, reject the write, or
// add writes to the same transaction (a quota's charge). index.ts registers the plugins; admission-request.ts builds
// what they see.
//
// Plugins are synchronous and see the store as the transaction does, so the state a decision rests on cannot change
// before the write is done. A plugin may run more than once for one request.
import type { FeatureGates } from '../../api/feature-gates.ts'
import type { Kind, KubeObject } from '../../api/kind.ts'
import type { Write } from '../../store/index.ts'
import type { Collection } from '../keys.ts'
import type { LiveObject } from '../objects/coalescable-write.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import type { Shared } from '../objects/stored-object.ts'
import type { Resource } from '../resources.ts'
import type { UserInfo } from '../security/index.ts'

type Operation = 'CREATE' | 'UPDATE' | 'DELETE'

export interface AdmissionRequest {
  readonly operation: Operation
  readonly resource: Resource
  /** '' for the object itself. */
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  /** The draft to be written, in stored form; absent on delete. `mutate` may change it. */
  readonly object?: AnyObject
  /** The stored object; absent on create. */
  readonly old?: Shared<AnyObject>
  /** For `validate`: the object after the write. Absent: the object is removed, not just marked for deletion. */
  readonly after?: AnyObject
  readonly user: UserInfo
  readonly dryRun: boolean
  readonly nowMs: number
  readonly gates: FeatureGates
  /** A stored object as this transaction sees it. The read is a condition: the transaction fails if the object changes. */
  find<T extends KubeObject>(kind: Kind<T> | Collection, namespace: string, name: string): Shared<T> | undefined
  /**
   * All objects of a kind, or of one namespace, in order of their names. Not a condition of the transaction: where several
   * servers share the store, the objects may change before the write is done. `find` the ones that must not.
   */
  list<T extends KubeObject>(kind: Kind<T> | Collection, namespace?: string): readonly Shared<T>[]
  /** The same for objects that plugins write with a CoalescableWrite: live objects where available. */
  listLive<T extends KubeObject>(kind: Kind<T>, namespace: string): readonly (LiveObject | Shared<T>)[]
}

export interface AdmissionPlugin {
  readonly name: string
  /** Runs before preparation and validation. */
  mutate?(request: AdmissionRequest): void
  /** Runs after validation, on the object as it will be stored. Throws an ApiError to reject; may return more writes. */
  validate?(request: AdmissionRequest): readonly Write[] | undefined
}

export interface AdmissionChain {
  mutate(request: AdmissionRequest): void
  /** The writes that plugins add to the transaction. */
  validate(request: AdmissionRequest): readonly Write[]
}

export function createAdmissionChain(plugins: readonly AdmissionPlugin[]): AdmissionChain {
  return {
    mutate(request) {
      for (const plugin of plugins) plugin.mutate?.(request)
    },
    validate(request) {
      let writes: readonly Write[] | undefined
      for (const plugin of plugins) {
        const more = plugin.validate?.(request)
        if (more && more.length > 0) writes = writes ? [...writes, ...more] : more
      }
      return writes ?? []
    },
  }
}
