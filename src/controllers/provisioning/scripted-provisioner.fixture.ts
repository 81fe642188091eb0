// A fake storage in memory and a provisioner that returns scripted results and then succeeds. The storage survives crashes
// of the processes that call it.
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { DeleteResult, Failure, Provisioner, ProvisionRequest, ProvisionResult } from './provisioner.ts'

interface ScriptedResult {
  /** The failure to return. Default: success. */
  readonly fails?: Failure
  readonly ignores?: true
  readonly message?: string
  /** Whether the provisioner fails before the storage is called. */
  readonly isNotCalled?: true
  /** Whether the storage has the volume after the call. Default: true unless the call fails. */
  readonly creates?: boolean
  /** Size of the volume. Default: the requested size. */
  readonly size?: string
  /** Handle of the returned volume. Default: a unique handle for the claim. */
  readonly handle?: string
  readonly labels?: Readonly<Record<string, string>>
  /** Awaited before the call takes effect. */
  readonly after?: Promise<unknown>
  readonly throws?: Error
}

export interface ScriptedStorage {
  /** Sizes of the volumes in the storage by handle. */
  readonly assets: Map<string, string>
  readonly provisions: ProvisionRequest[]
  readonly deletes: Readonly<PersistentVolume>[]
  readonly forgottenUids: string[]
  /** Results of the next calls in order. */
  readonly script: ScriptedResult[]
  readonly deleteScript: DeleteResult[]
  provisioner(name?: string, overrides?: Partial<Provisioner>): Provisioner
}

const NO_VOLUME_FAILURES: ReadonlySet<Failure> = new Set(['final', 'infeasible', 'reschedule'])

export function createScriptedStorage(): ScriptedStorage {
  const assets = new Map<string, string>()
  const provisions: ProvisionRequest[] = []
  const deletes: Readonly<PersistentVolume>[] = []
  const forgottenUids: string[] = []
  const script: ScriptedResult[] = []
  const deleteScript: DeleteResult[] = []

  async function provision(
    name: string,
    request: ProvisionRequest,
    beforeCreate: () => Promise<void> = async () => {},
  ): Promise<ProvisionResult> {
    if (!script[0]?.isNotCalled) await beforeCreate()
    provisions.push(request)
    const { fails, ignores, message = 'scripted failure', isNotCalled, after, throws, ...result } = script.shift() ?? {}
    await after
    const handle = result.handle ?? `${name}/${request.volumeName}`
    const { resources, volumeAttributesClassName } = request.claim.spec ?? {}
    const requestedSize = String(resources?.requests?.storage)
    if (result.creates ?? !(fails || ignores || throws))
      assets.set(handle, assets.get(handle) ?? result.size ?? requestedSize)
    if (fails && !isNotCalled && NO_VOLUME_FAILURES.has(fails)) assets.delete(handle) // consistent with the reported failure
    if (throws) throw throws
    if (fails) return { is: 'failed', failure: fails, message, ...(isNotCalled ? { isNotCalled } : {}) }
    if (ignores) return { is: 'ignored', message }
    return {
      is: 'provisioned',
      volume: {
        ...(result.labels ? { labels: result.labels } : {}),
        spec: {
          capacity: { storage: assets.get(handle) ?? requestedSize },
          csi: { driver: name, volumeHandle: handle },
          ...(volumeAttributesClassName ? { volumeAttributesClassName } : {}),
        },
      },
    }
  }

  async function deleteVolume(volume: Readonly<PersistentVolume>): Promise<DeleteResult> {
    deletes.push(volume)
    const result = deleteScript.shift() ?? { is: 'deleted' }
    if (result.is === 'deleted') assets.delete(volume.spec?.csi?.volumeHandle ?? '')
    return result
  }

  return {
    assets,
    provisions,
    deletes,
    forgottenUids,
    script,
    deleteScript,
    provisioner: (name = 'disks.example.com', overrides = {}) => ({
      name,
      provision: (request, _signal, beforeCreate) => provision(name, request, beforeCreate),
      delete: deleteVolume,
      owns: (volume) => volume.spec?.csi?.driver === name,
      forget: (uid) => void forgottenUids.push(uid),
      ...overrides,
    }),
  }
}
