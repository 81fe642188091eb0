// Changes of one object and of its status as conditional writes: the first holds for the version that was read, the
// second, which cannot know the version the first will make, for the object with that uid.
import type { Kind, KubeObject } from '../../api/kind.ts'
import type { CommitWrite } from '../../client/index.ts'

export interface PatchParts {
  /** A value of null removes the annotation. */
  readonly annotations?: Readonly<Record<string, string | null>>
  readonly spec?: object
  /** All that are left of them; absent: they stay as they are. */
  readonly finalizers?: readonly string[] | undefined
}

export function mergePatches(
  kind: Kind,
  { metadata: { namespace, name = '', uid, resourceVersion } }: Readonly<KubeObject>,
  { main, status }: { readonly main?: PatchParts | undefined; readonly status?: object | undefined },
): CommitWrite[] {
  const ref = { name, ...(namespace ? { namespace } : {}) }
  const writes: CommitWrite[] = []
  /** One that is made in the same commit has neither yet. */
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
