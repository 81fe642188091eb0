// The chain every write passes inside its transaction: plugins may change the draft, refuse the write,
// or add writes that must stand or fall with it (a quota's charge). One place to register: index.ts.
//
// Plugins are synchronous and see the store as the transaction does, so what they decide on cannot
// change before the write happens. They may be run more than once for one request.

import type { FeatureGates } from '../../api/feature-gates.ts'
import type { KubeObject } from '../../api/kind.ts'
import type { Running } from '../objects/running-write.ts'
import type { Shared } from '../objects/stored-object.ts'
import type { Resource } from '../resources.ts'
import type { UserInfo } from '../security/index.ts'

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE'

export interface AdmissionRequest {
  readonly operation: Operation
  readonly resource: Resource
  /** '' for the object itself. */
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  /** The draft to be written, in stored form; absent on delete. `mutate` may change it. */
  readonly object?: any
  /** The stored object; absent on create. */
  readonly old?: Shared<any>
  /** For `validate`: what the write leaves behind. Absent: the object will be gone, not just marked as going. */
  readonly after?: any
  readonly user: UserInfo
  readonly dryRun: boolean
  readonly nowMs: number
  readonly gates: FeatureGates
  /** Any stored object, as this transaction sees it. */
  find(group: string, plural: string, namespace: string, name: string): Shared<any> | undefined
  /**
   * All objects of a kind, or of one namespace, in order of their names. A look: where several servers share the store,
   * they may change before this is written. `find` what must still be so.
   */
  list(group: string, plural: string, namespace?: string): readonly Shared<any>[]
  /** The same of one namespace, for who writes them `running`: what such a write left in this group commit, as it is. */
  listRunning(group: string, plural: string, namespace: string): readonly (Running | Shared<any>)[]
}

export interface AdmissionPlugin {
  readonly name: string
  /** Before preparation and validation. */
  mutate?(request: AdmissionRequest): void
  /** After validation, on the object as it will be stored. Throws an ApiError to refuse; may return more writes. */
  validate?(request: AdmissionRequest): readonly ObjectWrite[] | undefined
}

/** A write of another object in the same transaction. */
export interface ObjectWrite {
  readonly group: string
  readonly plural: string
  readonly namespace: string
  readonly name: string
  /** Absent, and nothing running either: it is deleted. */
  readonly object?: KubeObject
  /** Instead of `object`: who comes next in the same group commit may go on from here, and write over it. */
  readonly running?: Running
}

export interface AdmissionChain {
  mutate(request: AdmissionRequest): void
  validate(request: AdmissionRequest): readonly ObjectWrite[]
}

export function createAdmissionChain(plugins: readonly AdmissionPlugin[]): AdmissionChain {
  return {
    mutate(request) {
      for (const plugin of plugins) plugin.mutate?.(request)
    },
    validate(request) {
      let writes: readonly ObjectWrite[] | undefined
      for (const plugin of plugins) {
        const more = plugin.validate?.(request)
        if (more && more.length > 0) writes = writes ? [...writes, ...more] : more
      }
      return writes ?? []
    },
  }
}
