// Changes of an object and its status as conditional writes: the first is conditional on the resourceVersion that was
// read, the second only on the uid, because it cannot know the version that the first will produce. Pure.
import type { Kind, KubeObject } from '../../api/kind.ts'
import type { CommitWrite } from '../../client/index.ts'

export interface PatchParts {
  /** A value of null removes the annotation. */
  readonly annotations?: Readonly<Record<string, string | null>>
  readonly spec?: object
  /** The complete new list; absent: unchanged. */
  readonly finalizers?: readonly string[]
}

export function mergePatches(
  kind: Kind,
  { metadata: { namespace, name = '', uid, resourceVersion } }: Readonly<KubeObject>,
  { main, status }: { readonly main?: PatchParts; readonly status?: object },
): CommitWrite[] {
  const ref = { name, ...(namespace ? { namespace } : {}) }
  const writes: CommitWrite[] = []
  /** An object that is created in the same commit has neither yet. */
  const condition = () => ({
    ...(uid === undefined ? {} : { uid }),
    ...(writes.length > 0 || resourceVersion === undefined ? {} : { resourceVersion }),
  })
  if (main) {
    const { annotations, spec, finalizers } = main
    const metadata = {
      ...condition(),
      ...(annotations ? { annotations } : {}),
      ...(finalizers ? { finalizers: finalizers.length > 0 ? finalizers : null } : {}),
    }
    writes.push({ do: 'patch', kind, ref, patch: { type: 'merge', body: { metadata, ...(spec ? { spec } : {}) } } })
  }
  if (status) {
    const body = { metadata: condition(), status }
    writes.push({ do: 'patch', kind, ref, subresource: 'status', patch: { type: 'merge', body } })
  }
  return writes
}
