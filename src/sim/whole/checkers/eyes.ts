// Sees what each process asks the server for: when it last read a volume, and which volumes it wants deleted.
import type { Kind } from '../../../api/kind.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume.ts'
import type { ClientSpy } from './court.ts'

export interface Eyes extends ClientSpy {
  /** Some process asked for this volume's deletion. */
  isAskedToDelete(volumeName: string): boolean
}

export function createEyes(): Eyes {
  const asked = new Set<string>()
  const note = (kind: Kind, name: string) => {
    if (kind === (persistentVolumeKind as Kind)) asked.add(name)
  }
  return {
    isAskedToDelete: (name) => asked.has(name),
    aroundClient: (_process, client) => ({
      ...client,
      delete: (kind, ref, request) => {
        note(kind as unknown as Kind, ref.name)
        return client.delete(kind, ref, request)
      },
      commit: (writes, options) => {
        for (const write of writes) if (write.do === 'delete') note(write.kind, write.ref.name)
        return client.commit(writes, options)
      },
    }),
  }
}
