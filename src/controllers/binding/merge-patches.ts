// Changes of one object and of its status as conditional writes: the first holds for the version that was read, the
// second, which cannot know the version the first will make, for the object with that uid.
import type { Kind, KubeObject } from '../../api/kind.ts'
import type { CommitWrite } from '../../client/index.ts'

export interface PatchParts {
  /** A value of null removes the annotation. */
  readonly annotations?: Readonly<Record<string, string | null>>
  readonly spec?: object
}

export function mergePatches(
  kind: Kind,
  { metadata: { namespace, name = '', uid, resourceVersion } }: Readonly<KubeObject>,
  { main, status }: { readonly main?: PatchParts | undefined; readonly status?: object | undefined },
): CommitWrite[] {
  const ref = { name, ...(namespace ? { namespace } : {}) }
  const writes: CommitWrite[] = []
  const condition = () => (writes.length === 0 ? { uid, resourceVersion } : { uid })
  if (main) {
    const { annotations, spec } = main
    const metadata = { ...condition(), ...(annotations ? { annotations } : {}) }
    writes.push({ do: 'patch', kind, ref, patch: { type: 'merge', body: { metadata, ...(spec ? { spec } : {}) } } })
  }
  if (status) {
    const body = { metadata: condition(), status }
    writes.push({ do: 'patch', kind, ref, subresource: 'status', patch: { type: 'merge', body } })
  }
  return writes
}
