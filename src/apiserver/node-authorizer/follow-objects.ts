// Loads pods, volumes and attachments from the store into the graph of nodes and follows their changes.
import { podKind } from '../../api/kinds/pod/pod.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Store } from '../../store/index.ts'
import { followStore } from '../follow-store.ts'
import { collectionPrefix } from '../keys.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import type { StoredObjects } from '../objects/stored-object.ts'
import type { NodeGraph } from './node-graph.ts'

export interface FollowObjectsOptions {
  readonly store: Store
  /** Decodes entries. Shared with the watches of clients, so that an event is decoded once. */
  readonly objects: StoredObjects
  readonly graph: NodeGraph
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Resolves when the graph is loaded. Continues to follow changes until the signal is aborted. */
export async function followObjects({ objects, graph, ...options }: FollowObjectsOptions): Promise<void> {
  const followedKinds = [
    { kind: podKind, set: graph.setPod },
    { kind: persistentVolumeKind, set: graph.setVolume },
    { kind: volumeAttachmentKind, set: graph.setAttachment },
  ]
  await Promise.all(
    followedKinds.map(({ kind, set }) => {
      const prefix = collectionPrefix(kind)
      return followStore({
        ...options,
        prefix,
        description: kind.plural,
        onEntry(key, entry, isLoaded) {
          const decode = isLoaded ? objects.decodeOnce : objects.decode
          set(key.slice(prefix.length), entry && (decode(entry) as AnyObject))
        },
      })
    }),
  )
}
