// Records the volumes whose deletion was requested by a process, not by a user.
import type { Kind } from '../../api/kind.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { ObjectOf } from '../engine/view.ts'
import type { ClientObserver } from './context.ts'

export interface DeletionRequests extends ClientObserver {
  /** Whether a process requested this volume's deletion. */
  includes(volume: ObjectOf<'volume'>): boolean
}

export function createDeletionRequests(): DeletionRequests {
  /** Uids, and names where the request had no uid precondition. */
  const requestedKeys = new Set<string>()
  const record = (kind: Kind, name: string, uid: string | undefined) => {
    if (kind === (persistentVolumeKind as Kind)) requestedKeys.add(uid ?? name)
  }
  return {
    includes: ({ metadata: { name = '', uid = '' } }) => requestedKeys.has(uid) || requestedKeys.has(name),
    wrapClient: (_process, client) => ({
      ...client,
      delete: (kind, ref, request) => {
        record(kind as unknown as Kind, ref.name, request?.uid)
        return client.delete(kind, ref, request)
      },
      commit: (writes, options) => {
        for (const write of writes) if (write.do === 'delete') record(write.kind, write.ref.name, write.uid)
        return client.commit(writes, options)
      },
    }),
  }
}
