// Builds the AdmissionRequest of a write. Its lookups read other objects from the view of the write's transaction.
import type { TransactionView } from '../../store/index.ts'
import { type Collection, collectionPrefix, objectKey } from '../keys.ts'
import { liveObjectOf } from '../objects/coalescable-write.ts'
import type { AnyObject, ObjectDeps } from '../objects/object-deps.ts'
import type { Shared } from '../objects/stored-object.ts'
import type { WriteTarget } from '../objects/write-verb.ts'
import type { AdmissionRequest } from './admission.ts'

/** The request of a write that is being planned: between `mutate` and `validate` the verb sets the objects in stored form. */
interface PlannedAdmissionRequest extends AdmissionRequest {
  object?: AnyObject
  resultingObject?: AnyObject
}

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
): PlannedAdmissionRequest {
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
    find: findWithCache(deps, view),
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
function findWithCache(deps: ObjectDeps, view: TransactionView): Find {
  const lookups: Lookup[] = []
  return (kind, namespace, name) => find(deps, view, lookups, kind, namespace, name)
}

interface Lookup {
  readonly kind: Collection
  readonly namespace: string
  readonly name: string
  readonly object: Shared | undefined
}

function find(
  { objects }: ObjectDeps,
  view: TransactionView,
  lookups: Lookup[],
  kind: Collection,
  namespace: string,
  name: string,
): Shared | undefined {
  for (const lookup of lookups) {
    if (lookup.name === name && lookup.kind === kind && lookup.namespace === namespace) return lookup.object
  }
  const entry = view.get(objectKey(kind, namespace, name))
  const object = entry && objects.decode(entry)
  if (lookups.length < LOOKUPS_MAX) lookups.push({ kind, namespace, name, object })
  return object
}
