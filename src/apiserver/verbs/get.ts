// GET of one object. Subresources such as status return the whole object.
import { notFound } from '../../api/status-error.ts'
import type { Entry } from '../../store/index.ts'
import { objectKey } from '../keys.ts'
import { type ReadDeps, storeOf, waitForRevision } from '../objects/wait-for-revision.ts'
import type { Resource } from '../resources.ts'

export async function getObject(
  deps: ReadDeps,
  resource: Resource,
  namespace: string,
  name: string,
  minimumRevision: number,
): Promise<Entry> {
  const store = storeOf(deps, resource)
  await waitForRevision({ store, clock: deps.clock }, minimumRevision)
  const entry = await store.get(objectKey(resource.storedKind, namespace, name))
  if (!entry) throw notFound(resource, name)
  return entry
}
