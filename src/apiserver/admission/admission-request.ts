// Builds the request that admission plugins see from a write and the view of its transaction.
import type { TransactionView } from '../../store/index.ts'
import { type Collection, collectionPrefix, objectKey } from '../keys.ts'
import { liveOrDecoded } from '../objects/coalescable-write.ts'
import type { AnyObject, ObjectDeps } from '../objects/object-deps.ts'
import type { Shared } from '../objects/stored-object.ts'
import type { WriteTarget } from '../objects/write-verb.ts'
import type { AdmissionRequest } from './admission.ts'

export function admissionRequest(
  deps: ObjectDeps,
  view: TransactionView,
  target: WriteTarget,
  { operation, name, object, old, after }: Pick<AdmissionRequest, 'operation' | 'name' | 'object' | 'old' | 'after'>,
): AdmissionRequest {
  return {
    operation,
    name,
    object,
    old,
    after,
    resource: target.resource,
    subresource: target.subresource,
    namespace: target.namespace,
    user: target.user,
    dryRun: target.dryRun,
    nowMs: deps.clock.nowMs(),
    gates: deps.gates,
    find: memoized((kind, namespace, name) => {
      const entry = view.get(objectKey(kind, namespace, name))
      return entry && deps.objects.decode(entry)
    }),
    list: (kind: Collection, namespace?: string) =>
      view.list(collectionPrefix(kind, namespace)).map((entry): AnyObject => deps.objects.decode(entry)),
    listLive: (kind: Collection, namespace: string) =>
      view.list(collectionPrefix(kind, namespace)).map((entry): AnyObject => liveOrDecoded(entry, deps.objects)),
  }
}

type Find = (kind: Collection, namespace: string, name: string) => Shared<AnyObject> | undefined

const MEMOIZED_MAX = 4

/** Plugins look up the same few objects one after another, and within a transaction they do not change. */
function memoized(find: Find): Find {
  const known: { readonly of: Parameters<Find>; readonly object: Shared | undefined }[] = []
  return (kind, namespace, name) => {
    for (const { of, object } of known) {
      if (of[2] === name && of[0] === kind && of[1] === namespace) return object
    }
    const object = find(kind, namespace, name)
    if (known.length < MEMOIZED_MAX) known.push({ of: [kind, namespace, name], object })
    return object
  }
}
