// Judges every call that destroys data, by what the store held when it was made: never while the volume's policy is
// Retain, and never while a claim is bound to it. A caller is not blamed for what changed after it last looked.
import type { Kind } from '../../api/kind.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { type Client, keyOfObject } from '../../client/index.ts'
import { callDriver } from '../../csi/driver.ts'
import { type CsiDriver, createCsiDriver } from '../../csi/index.ts'
import type { World } from '../world.ts'
import { assetOf, driverAsset } from './assets.ts'
import { isBound } from './bindings.ts'
import type { Claim, StoreView, Volume } from './store-view.ts'

export interface DeletionChecker {
  /** Follows one life of a process: what it reads, and what it destroys. */
  witness(client: Client): Witness
  /** Assets whose deletion was asked for, and rightly so: they may be gone at any moment from then on. */
  readonly condemned: ReadonlySet<string>
}

export interface Witness {
  readonly client: Client
  driver(driver: CsiDriver): CsiDriver
  /** It is about to destroy this asset (assets.ts). */
  destroys(asset: string): void
}

interface Read {
  readonly askedMs: number
  readonly heardMs: number
}

/** Whoever looks before it destroys does so within this, also where it has to wait for another call to end. */
const FRESH_MS = 30_000

/** `nameOf`: what the storage behind a volume is called in `destroys`. */
export function checkDeletions(
  world: World,
  view: StoreView,
  convict: (crime: string) => void,
  nameOf: (volume: Volume) => string | undefined = assetOf,
): DeletionChecker {
  /** Volumes that must not be destroyed: why, and since when without interruption. */
  const kept = new Map<string, { readonly why: string; readonly sinceMs: number }>()
  const condemned = new Set<string>()

  view.onCommit((changes) => {
    for (const { of, old, next } of changes) {
      if (of === 'volume') look((next ?? old)?.metadata.name ?? '')
      else for (const claim of [old, next]) look((claim as Claim | undefined)?.spec?.volumeName ?? '')
    }
  })

  function look(name: string): void {
    const volume = view.volumes.get(name)
    const why = volume && whyKept(volume, view)
    if (why === undefined) kept.delete(name)
    else kept.set(name, { why, sinceMs: kept.get(name)?.sinceMs ?? world.nowMs })
  }

  /** Up to when whoever read this knows what holds. To have looked long ago is no excuse, unless it slept since. */
  function knownMs(read: Read | undefined): number {
    if (!read) return world.nowMs
    const isFresh = world.nowMs - read.heardMs < FRESH_MS
    return isFresh ? read.askedMs : Math.max(read.askedMs, world.nowMs - FRESH_MS)
  }

  function judge(asset: string, lastRead: ReadonlyMap<string, Read>): void {
    const crimes = [...view.volumes.values()].flatMap((volume) => {
      if (nameOf(volume) !== asset) return []
      const { name = '' } = volume.metadata
      const keeping = kept.get(name)
      return keeping && keeping.sinceMs < knownMs(lastRead.get(name))
        ? [`${asset} is destroyed, and volume ${name} ${keeping.why}`]
        : []
    })
    for (const crime of crimes) convict(crime)
    if (crimes.length === 0) condemned.add(asset)
  }

  return {
    condemned,
    witness(client) {
      const lastRead = new Map<string, Read>()
      const destroys = (asset: string) => judge(asset, lastRead)
      return {
        destroys,
        client: {
          ...client,
          get: async (kind, ref, options) => {
            const askedMs = world.nowMs
            const found = await client.get(kind, ref, options)
            if (kind === (persistentVolumeKind as Kind)) lastRead.set(ref.name, { askedMs, heardMs: world.nowMs })
            return found
          },
        },
        driver: (driver) =>
          createCsiDriver((method, request, options) => {
            const { volumeId } = request as unknown as { volumeId: string }
            if (method.name === 'DeleteVolume') destroys(driverAsset(volumeId))
            return callDriver(driver, method, request, options)
          }),
      }
    },
  }
}

function whyKept({ metadata: { name = '' }, spec }: Volume, view: StoreView): string | undefined {
  if (spec?.persistentVolumeReclaimPolicy !== 'Delete') return `has the policy ${spec?.persistentVolumeReclaimPolicy}`
  for (const claim of view.claims.values()) {
    if (isBound(claim) && claim.spec?.volumeName === name) return `is bound to the claim ${keyOfObject(claim)}`
  }
  return undefined
}
