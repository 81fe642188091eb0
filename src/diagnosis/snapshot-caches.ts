// Creates the caches of a snapshot's objects that the scheduler's plugins read, and a clock that is stopped at the time of the
// snapshot.
import type { Clock } from '../base/clock.ts'
import { SNAPSHOT_KINDS, type Snapshot, type SnapshotList } from './snapshot.ts'
import { createSnapshotCache } from './snapshot-cache.ts'

export type SnapshotCaches = ReturnType<typeof createSnapshotCaches>

export function createSnapshotCaches(snapshot: Snapshot) {
  const isReadable = (list: SnapshotList) => !snapshot.missingRules.some((missing) => missing.list === list)
  return {
    pods: createSnapshotCache(SNAPSHOT_KINDS.pods, snapshot.pods),
    nodes: createSnapshotCache(SNAPSHOT_KINDS.nodes, snapshot.nodes),
    drivers: createSnapshotCache(SNAPSHOT_KINDS.drivers, snapshot.drivers),
    csiNodes: createSnapshotCache(SNAPSHOT_KINDS.csiNodes, snapshot.csiNodes),
    attachments: createSnapshotCache(SNAPSHOT_KINDS.attachments, snapshot.attachments),
    claims: createSnapshotCache(SNAPSHOT_KINDS.claims, snapshot.claims),
    volumes: createSnapshotCache(SNAPSHOT_KINDS.volumes, snapshot.volumes),
    classes: createSnapshotCache(SNAPSHOT_KINDS.classes, snapshot.classes),
    // Like the scheduler, do not check capacity if the API server does not serve CSIStorageCapacity or the user may not list it.
    capacities: snapshot.notServed.has('capacities')
      ? undefined
      : createSnapshotCache(SNAPSHOT_KINDS.capacities, snapshot.capacities, isReadable('capacities')),
  }
}

/** A stopped clock: a snapshot has one time, and no timer may keep the process alive. */
export const fixedClock = (nowMs: number): Clock => ({
  nowMs: () => nowMs,
  monotonicMs: () => nowMs,
  sleep: () => new Promise(() => {}),
  after: () => () => {},
  nextTurn: () => Promise.resolve(),
})
