// Builders of claims and volumes for tests, and a fake cache of volumes.
import type { Stored } from '../api/kind.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'
import type { Cache, CacheHandlers } from '../runtime/cache.ts'
import { ObjectSet } from '../runtime/object-set.ts'
import type { Claim, Volume } from './matching.ts'

export interface ClaimSample {
  readonly name?: string
  readonly uid?: string
  readonly size?: string
  readonly modes?: readonly string[]
  readonly className?: string
  readonly spec?: object
  readonly annotations?: Readonly<Record<string, string>>
  readonly metadata?: object
  readonly status?: object
}

export const aClaim = (sample: ClaimSample = {}): Claim => {
  const { name = 'c', uid = `uid-${name}`, size = '1Gi', modes = ['ReadWriteOnce'], className } = sample
  const { spec, annotations, metadata, status } = sample
  return {
    metadata: {
      namespace: 'default',
      name,
      uid,
      resourceVersion: '7',
      ...(annotations ? { annotations } : {}),
      ...metadata,
    },
    spec: {
      accessModes: modes,
      resources: { requests: { storage: size } },
      ...(className === undefined ? {} : { storageClassName: className }),
      ...spec,
    },
    status: { phase: 'Pending', ...status },
  } as unknown as Claim
}

export interface VolumeSample {
  readonly name?: string
  readonly size?: string
  readonly modes?: readonly string[]
  readonly className?: string
  /** The claimRef of the volume. Without a uid, it reserves the volume. */
  readonly claim?: { readonly name: string; readonly uid?: string }
  readonly phase?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly spec?: object
  readonly annotations?: Readonly<Record<string, string>>
  readonly metadata?: object
}

export const aVolume = (sample: VolumeSample = {}): Volume => {
  const { name = 'pv', size = '1Gi', modes = ['ReadWriteOnce'], className, claim, phase = 'Available' } = sample
  const { labels, spec, annotations, metadata } = sample
  return {
    metadata: {
      name,
      uid: `uid-${name}`,
      resourceVersion: '8',
      ...(annotations ? { annotations } : {}),
      ...(labels ? { labels } : {}),
      ...metadata,
    },
    spec: {
      capacity: { storage: size },
      accessModes: modes,
      ...(className === undefined ? {} : { storageClassName: className }),
      ...(claim ? { claimRef: { namespace: 'default', ...claim } } : {}),
      ...spec,
    },
    status: { phase },
  } as unknown as Volume
}

/** Implements the part of a cache that the volume index uses. Tests call put and remove. */
export function fakeVolumeCache() {
  const volumes = new ObjectSet<Stored<PersistentVolume>>()
  const subscribers = new Set<CacheHandlers<PersistentVolume>>()
  const indexFunctions = new Map<string, unknown>()
  const cache: Pick<Cache<PersistentVolume>, 'get' | 'addIndex' | 'byIndex' | 'subscribe'> = {
    get: (name) => volumes.get(String(name)),
    addIndex(name, valuesOf) {
      if (indexFunctions.get(name) === valuesOf) return
      volumes.addIndex(name, valuesOf)
      indexFunctions.set(name, valuesOf)
    },
    byIndex: (name, value) => volumes.byIndex(name, value),
    subscribe(subscriber) {
      subscribers.add(subscriber)
      return () => void subscribers.delete(subscriber)
    },
  }
  return {
    cache: cache as Cache<PersistentVolume>,
    put(object: Volume): void {
      const volume = object as Stored<Volume>
      const { name } = volume.metadata
      const previousVolume = volumes.get(name)
      volumes.put(name, volume)
      for (const subscriber of subscribers) {
        if (previousVolume) subscriber.updated?.(volume, previousVolume)
        else subscriber.added?.(volume)
      }
    },
    remove(name: string): void {
      const previousVolume = volumes.get(name)
      volumes.delete(name)
      if (previousVolume) for (const subscriber of subscribers) subscriber.deleted?.(previousVolume, previousVolume)
    },
    all: () => [...volumes.values()],
    indexNames: () => [...indexFunctions.keys()],
  }
}
