// DELETE of a collection: deletes the listed objects one by one, each in its own transaction.
import { isNotFound } from '../../api/status-error.ts'
import type { Entry } from '../../store/index.ts'
import type { DeleteOptions, ListOptions } from '../http/options.ts'
import type { ObjectDeps } from '../objects/object-deps.ts'
import type { WriteTarget } from '../objects/write-verb.ts'
import { deleteVerb } from './delete.ts'
import { executeWrite } from './execute.ts'
import { type ListedObjects, listObjects } from './list.ts'

/** Returns the list with the state of the objects after their deletion. */
export async function deleteCollection(
  deps: ObjectDeps,
  target: WriteTarget,
  { selection, options }: { selection: ListOptions; options: DeleteOptions },
): Promise<ListedObjects> {
  const list = await listObjects(deps, target.resource, target.namespace, selection)
  const entries: Entry[] = []
  for (const entry of list.entries) {
    const { namespace = '', name = '' } = deps.objects.decode(entry).metadata
    try {
      const { value, revision } = await executeWrite(deps, deleteVerb({ ...target, namespace, name }, options))
      entries.push({ ...entry, value, modRevision: revision })
    } catch (error) {
      if (!isNotFound(error)) throw error // otherwise another client has deleted it since the list
    }
  }
  return { ...list, entries }
}
