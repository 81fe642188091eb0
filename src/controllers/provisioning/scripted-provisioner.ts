// For tests: a small storage in memory and a provisioner on it that answers as its script says, then as it should.
// What it holds outlives the processes that ask it, as real storage does.
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Deleted, Failure, Provisioned, Provisioner, ProvisionRequest } from './provisioner.ts'

export interface ScriptedAnswer {
  /** Default: as it should be. */
  readonly fails?: Failure
  readonly ignores?: true
  readonly because?: string
  /** It fails before the storage hears of it. */
  readonly isUnasked?: true
  /** Whether the storage has the volume afterwards. Default: when it does not fail. */
  readonly makes?: boolean
  /** Size of what is made, where it is not the size that was asked for. */
  readonly size?: string
  /** Which volume the storage gives out, where it is not one of its own for this claim. */
  readonly handle?: string
  readonly labels?: Readonly<Record<string, string>>
  /** Waited for before anything happens. */
  readonly after?: Promise<unknown>
  readonly throws?: Error
}

export interface ScriptedStorage {
  /** Handles and sizes of the volumes it holds. */
  readonly assets: Map<string, string>
  readonly provisions: ProvisionRequest[]
  readonly deletes: Readonly<PersistentVolume>[]
  readonly forgotten: string[]
  /** Answers of the next calls, in order. */
  readonly script: ScriptedAnswer[]
  readonly deleteScript: Deleted[]
  provisioner(name?: string, more?: Partial<Provisioner>): Provisioner
}

const SAYS_NOTHING_EXISTS: ReadonlySet<Failure> = new Set(['final', 'infeasible', 'reschedule'])

export function scriptedStorage(): ScriptedStorage {
  const assets = new Map<string, string>()
  const provisions: ProvisionRequest[] = []
  const deletes: Readonly<PersistentVolume>[] = []
  const forgotten: string[] = []
  const script: ScriptedAnswer[] = []
  const deleteScript: Deleted[] = []

  async function provision(
    name: string,
    request: ProvisionRequest,
    aboutToAsk: () => Promise<void> = async () => {},
  ): Promise<Provisioned> {
    if (!script[0]?.isUnasked) await aboutToAsk()
    provisions.push(request)
    const { fails, ignores, because = 'as the script says', isUnasked, after, throws, ...answer } = script.shift() ?? {}
    await after
    const handle = answer.handle ?? `${name}/${request.volumeName}`
    const { resources, volumeAttributesClassName } = request.claim.spec ?? {}
    const asked = String(resources?.requests?.storage)
    if (answer.makes ?? !(fails || ignores || throws)) assets.set(handle, assets.get(handle) ?? answer.size ?? asked)
    if (fails && !isUnasked && SAYS_NOTHING_EXISTS.has(fails)) assets.delete(handle) // it does not lie
    if (throws) throw throws
    if (fails) return { is: 'failed', how: fails, because, ...(isUnasked ? { isUnasked } : {}) }
    if (ignores) return { is: 'ignored', because }
    return {
      is: 'made',
      volume: {
        ...(answer.labels ? { labels: answer.labels } : {}),
        spec: {
          capacity: { storage: assets.get(handle) ?? asked },
          csi: { driver: name, volumeHandle: handle },
          ...(volumeAttributesClassName ? { volumeAttributesClassName } : {}),
        },
      },
    }
  }

  async function remove(volume: Readonly<PersistentVolume>): Promise<Deleted> {
    deletes.push(volume)
    const answer = deleteScript.shift() ?? { is: 'deleted' }
    if (answer.is === 'deleted') assets.delete(volume.spec?.csi?.volumeHandle ?? '')
    return answer
  }

  return {
    assets,
    provisions,
    deletes,
    forgotten,
    script,
    deleteScript,
    provisioner: (name = 'disks.example.com', more = {}) => ({
      name,
      provision: (request, _signal, aboutToAsk) => provision(name, request, aboutToAsk),
      delete: remove,
      owns: (volume) => volume.spec?.csi?.driver === name,
      forget: (uid) => void forgotten.push(uid),
      ...more,
    }),
  }
}
