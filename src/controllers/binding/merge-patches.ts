// Builds the writes that change an object and its status. The first has the resourceVersion that was read as a
// precondition; the second has only the uid, because the first changes the resourceVersion. Pure.
import type { Kind, KubeObject } from '../../api/kind.ts'
import type { CommitWrite } from '../../client/index.ts'

export interface ObjectPatch {
  /** A value of null removes the annotation. */
  readonly annotations?: Readonly<Record<string, string | null>>
  readonly spec?: object
  /** The complete new list. If absent, the finalizers do not change. */
  readonly finalizers?: readonly string[] | undefined
}

export function mergePatches(
  kind: Kind,
  { metadata: { namespace, name = '', uid, resourceVersion } }: Readonly<KubeObject>,
  { main, status }: { readonly main?: ObjectPatch; readonly status?: object },
): CommitWrite[] {
  const ref = { name, ...(namespace ? { namespace } : {}) }
  const writes: CommitWrite[] = []
  /** An object that is created in the same commit has no uid or resourceVersion yet. */
  const preconditions = () => ({
    ...(uid === undefined ? {} : { uid }),
    ...(writes.length > 0 || resourceVersion === undefined ? {} : { resourceVersion }),
  })
  if (main) {
    const { annotations, spec, finalizers } = main
    const metadata = {
      ...preconditions(),
      ...(annotations ? { annotations } : {}),
      ...(finalizers ? { finalizers: finalizers.length > 0 ? finalizers : null } : {}),
    }
    writes.push({ do: 'patch', kind, ref, patch: { type: 'merge', body: { metadata, ...(spec ? { spec } : {}) } } })
  }
  if (status) {
    const body = { metadata: preconditions(), status }
    writes.push({ do: 'patch', kind, ref, subresource: 'status', patch: { type: 'merge', body } })
  }
  return writes
}
