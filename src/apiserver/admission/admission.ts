// The admission chain, which runs inside the transaction of a write. A plugin may change the draft, reject the write, or add
// writes to the same transaction, such as the charge of a quota.
//
// Plugins are synchronous and read the store through the view of the transaction. A plugin may run more than once for one
// request.
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
  /** Empty for the object itself. */
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  /** The draft to be written; absent on delete. `mutate` may change it. `validate` receives it in stored form. */
  readonly object?: AnyObject
  /** The object before the write; absent on create. */
  readonly oldObject?: Shared<AnyObject>
  /** The object after the write, for `validate`. Absent if the object is removed rather than marked for deletion. */
  readonly resultingObject?: AnyObject
  readonly user: UserInfo
  readonly dryRun: boolean
  readonly nowMs: number
  readonly gates: FeatureGates
  /** Returns an object from the view of the transaction, which is repeated if another server changes the object. */
  find<T extends KubeObject>(kind: Kind<T> | Collection, namespace: string, name: string): Shared<T> | undefined
  /**
   * Returns all objects of a kind, or of one namespace, in order of their names. If several servers share the store,
   * another server may change these objects before the commit; use `find` for objects that must not change.
   */
  list<T extends KubeObject>(kind: Kind<T> | Collection, namespace?: string): readonly Shared<T>[]
  /** Like `list`, for objects that plugins write with a CoalescableWrite; returns live objects where available. */
  listLive<T extends KubeObject>(kind: Kind<T>, namespace: string): readonly (LiveObject | Shared<T>)[]
}

export interface AdmissionPlugin {
  readonly name: string
  /** Runs before the preparation and validation of a create or update. A delete has no draft to change. */
  mutate?(request: AdmissionRequest): void
  /**
   * Runs after validation, on the object as it will be stored. Throws an ApiError to reject the write; may return
   * additional writes.
   */
  validate?(request: AdmissionRequest): readonly Write[] | undefined
}

export interface AdmissionChain {
  mutate(request: AdmissionRequest): void
  /** Returns the writes that plugins add to the transaction. */
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
        const pluginWrites = plugin.validate?.(request)
        if (pluginWrites && pluginWrites.length > 0) writes = writes ? [...writes, ...pluginWrites] : pluginWrites
      }
      return writes ?? []
    },
  }
}
