// Lists the claims and pods of a snapshot for quotas. Quotas of other kinds are not evaluated.
import type { ListObjects } from '../api/quota/index.ts'
import type { Snapshot } from './snapshot.ts'

/** Returns a function that lists the pods and claims of the namespace. For all other kinds, it returns an empty list. */
export function listObjectsOf(snapshot: Snapshot, namespace: string | undefined): ListObjects {
  return ({ plural }) => {
    const objects = plural === 'pods' ? snapshot.pods : plural === 'persistentvolumeclaims' ? snapshot.claims : []
    return objects.filter(({ metadata }) => metadata.namespace === namespace)
  }
}
