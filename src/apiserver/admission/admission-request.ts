// Builds the AdmissionRequest of a write. Its lookups read other objects from the view of the write's transaction.
import type { TransactionView } from '../../store/index.ts'
import { type Collection, collectionPrefix, objectKey } from '../keys.ts'
import { liveObjectOf } from '../objects/coalescable-write.ts'
import type { AnyObject, ObjectDeps } from '../objects/object-deps.ts'
import type { Shared } from '../objects/stored-object.ts'
import type { WriteTarget } from '../objects/write-verb.ts'
import type { AdmissionRequest } from './admission.ts'

export function admissionRequest(
  deps: ObjectDeps,
  view: TransactionView,
  target: WriteTarget,
  {
    operation,
    name,
    object,
    oldObject,
    resultingObject,
  }: Pick<AdmissionRequest, 'operation' | 'name' | 'object' | 'oldObject' | 'resultingObject'>,
): AdmissionRequest {
  return {
    operation,
    name,
    object,
    oldObject,
    resultingObject,
    resource: target.resource,
    subresource: target.subresource,
    namespace: target.namespace,
    user: target.user,
    dryRun: target.dryRun,
    nowMs: deps.clock.nowMs(),
    gates: deps.gates,
    find: memoize((kind, namespace, name) => {
      const entry = view.get(objectKey(kind, namespace, name))
      return entry && deps.objects.decode(entry)
    }),
    list: (kind: Collection, namespace?: string) =>
      view.list(collectionPrefix(kind, namespace)).map((entry): AnyObject => deps.objects.decode(entry)),
    listLive: (kind: Collection, namespace: string) =>
      view.list(collectionPrefix(kind, namespace)).map((entry): AnyObject => liveObjectOf(entry, deps.objects)),
  }
}

type Find = (kind: Collection, namespace: string, name: string) => Shared<AnyObject> | undefined

const LOOKUPS_MAX = 4

/**
 * Caches the first LOOKUPS_MAX lookups: plugins look up the same few objects, which do not change within a transaction.
 */
function memoize(find: Find): Find {
  const lookups: { readonly args: Parameters<Find>; readonly object: Shared | undefined }[] = []
  return (kind, namespace, name) => {
    for (const { args, object } of lookups) {
      if (args[2] === name && args[0] === kind && args[1] === namespace) return object
    }
    const object = find(kind, namespace, name)
    if (lookups.length < LOOKUPS_MAX) lookups.push({ args: [kind, namespace, name], object })
    return object
  }
}
