// Sees what each process asks the server for: when it last read a volume, and which volumes it wants deleted.
import type { Kind } from '../../api/kind.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { ObjectOf } from '../engine/view.ts'
import type { ClientObserver } from './context.ts'

export interface DeletionRequests extends ClientObserver {
  /** Some process, and not a person, asked for this volume's deletion. */
  includes(volume: ObjectOf<'volume'>): boolean
}

export function createDeletionRequests(): DeletionRequests {
  /** Uids, and names where whoever asked did not say which of that name. */
  const asked = new Set<string>()
  const note = (kind: Kind, name: string, uid: string | undefined) => {
    if (kind === (persistentVolumeKind as Kind)) asked.add(uid ?? name)
  }
  return {
    includes: ({ metadata: { name = '', uid = '' } }) => asked.has(uid) || asked.has(name),
    aroundClient: (_process, client) => ({
      ...client,
      delete: (kind, ref, request) => {
        note(kind as unknown as Kind, ref.name, request?.uid)
        return client.delete(kind, ref, request)
      },
      commit: (writes, options) => {
        for (const write of writes) if (write.do === 'delete') note(write.kind, write.ref.name, write.uid)
        return client.commit(writes, options)
      },
    }),
  }
}
