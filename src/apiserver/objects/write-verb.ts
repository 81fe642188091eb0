// The one form every write takes: HTTP requests, the in-process client and commits all produce a WriteVerb, which
// ../verbs/execute.ts runs. The verb files build it from a request body and plan the store writes it leads to.
import type { KubeObject } from '../../api/kind.ts'
import type { Binding } from '../../api/kinds/pod/pod-schema.ts'
import type { Write } from '../../store/index.ts'
import type { DeleteOptions } from '../http/options.ts'
import { objectKey } from '../keys.ts'
import type { Resource } from '../resources.ts'
import type { UserInfo } from '../security/index.ts'
import type { Update } from '../verbs/update.ts'

/** One write, its body decoded and checked as far as that is possible without the store. */
export type WriteVerb = {
  readonly target: WriteTarget
  /** Findings of decoding, for Warning headers. A patch decodes when it runs: read them afterwards. */
  readonly warnings: readonly string[]
} & (
  | { readonly do: 'create'; readonly body: KubeObject }
  | { readonly do: 'bind'; readonly binding: Binding }
  | { readonly do: 'update'; readonly update: Update }
  | { readonly do: 'delete'; readonly options: DeleteOptions }
)

export const NO_WARNINGS: readonly string[] = []

/** The object a write addresses, and the user who makes it. */
export interface WriteTarget {
  readonly resource: Resource
  readonly namespace: string
  /** '' for a create whose body carries the name. */
  readonly name: string
  readonly subresource: string
  readonly user: UserInfo
  readonly dryRun: boolean
  /** Owner of the fields that the write sets; absent: the server itself. */
  readonly fieldManager?: string
}

/** The outcome of a write: bytes as in the store, and their revision (0 for a dry-run create). */
export interface WriteResult {
  readonly value: Uint8Array
  readonly revision: number
  readonly created: boolean
  /** The object no longer exists: `value` is its last state. */
  readonly deleted: boolean
  readonly warnings: readonly string[]
}

/** What a verb does inside its transaction. A result with revision 0 takes the revision of the first write. */
export interface WritePlan {
  /** The object's own write first, then those that admission adds. */
  readonly writes: readonly Write[]
  readonly result: WriteResult
}

export const keyOf = ({ resource, namespace, name }: WriteTarget): string => objectKey(resource.stored, namespace, name)
