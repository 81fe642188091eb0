// The common form of all writes. HTTP requests, the in-process client and commits produce a WriteVerb, which
// ../verbs/execute.ts runs as a transaction.
import type { KubeObject } from '../../api/kind.ts'
import type { LeaseFence } from '../../api/kinds/lease/lease-fence.ts'
import type { Binding } from '../../api/kinds/pod/pod-schema.ts'
import type { Write } from '../../store/index.ts'
import type { DeleteOptions } from '../http/options.ts'
import { objectKey } from '../keys.ts'
import type { Resource } from '../resources.ts'
import type { UserInfo } from '../security/index.ts'
import type { ObjectChange } from '../timeline/describe-change.ts'
import type { Update } from '../verbs/update.ts'

/** A write whose body is decoded and validated as far as possible without the store. */
export type WriteVerb = {
  readonly target: WriteTarget
  /** Texts of the Warning headers. A patch adds its warnings when it runs, so read the list afterwards. */
  readonly warnings: readonly string[]
} & (
  | { readonly do: 'create'; readonly body: KubeObject }
  | { readonly do: 'bind'; readonly binding: Binding }
  | { readonly do: 'update'; readonly update: Update }
  | { readonly do: 'delete'; readonly options: DeleteOptions }
)

export const NO_WARNINGS: readonly string[] = []

/** The object that a write refers to, and the user who sends the write. */
export interface WriteTarget {
  readonly resource: Resource
  readonly namespace: string
  /** May be empty for a create, whose body contains the name. */
  readonly name: string
  readonly subresource: string
  readonly user: UserInfo
  readonly dryRun: boolean
  /** Owner of the fields that the write sets. Absent for the server's own writes. */
  readonly fieldManager?: string
  /** Leases that the sender must hold when the write is committed. */
  readonly fences?: readonly LeaseFence[] | undefined
  /** Called if an update or apply finds no object. Throws 403 unless the user may create it. Absent for trusted writes. */
  authorizeCreate?(): void
}

/** The result of a write: the stored bytes and their revision, which is 0 for a dry-run create. */
export interface WriteResult {
  readonly value: Uint8Array
  readonly revision: number
  readonly created: boolean
  /** Whether the object is removed; `value` is then its last state. */
  readonly deleted: boolean
  readonly warnings: readonly string[]
}

/** The writes of a verb and its result. A result with revision 0 receives the revision of the first write. */
export interface WritePlan {
  /** The write of the object, followed by those that admission adds. */
  readonly writes: readonly Write[]
  readonly result: WriteResult
  /** The object before and after the write, for the journal. Absent if nothing changes. */
  readonly change?: ObjectChange
}

export const keyOf = ({ resource, namespace, name }: WriteTarget): string =>
  objectKey(resource.storedKind, namespace, name)
