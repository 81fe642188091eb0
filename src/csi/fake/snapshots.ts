// The fake driver's snapshots. They are ready at once, cost nothing, and outlive their volume.
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Controller, SnapshotSchema } from '../gen/csi_pb.js'
import { type Acts, knownVolume, need, needController, refuse } from './model.ts'
import { pageOf } from './page.ts'
import type { FakeSnapshot } from './state.ts'

type SnapshotActs = Pick<Acts<typeof Controller>, 'createSnapshot' | 'deleteSnapshot' | 'listSnapshots' | 'getSnapshot'>

export const snapshotActs: SnapshotActs = {
  createSnapshot(model, request) {
    needController(model, 'CREATE_DELETE_SNAPSHOT')
    need(request.name, 'name')
    need(request.sourceVolumeId, 'source_volume_id')
    const known = Object.values(model.state.snapshots).find(({ name }) => name === request.name)
    if (known) {
      if (known.sourceVolumeId !== request.sourceVolumeId) {
        refuse('ALREADY_EXISTS', `snapshot "${request.name}" exists for another volume`)
      }
      return { snapshot: reply(known) }
    }
    const volume = knownVolume(model, request.sourceVolumeId)
    const order = ++model.state.made
    const snapshot: FakeSnapshot = {
      id: `snap-${order}`,
      name: request.name,
      order,
      sourceVolumeId: volume.id,
      sizeBytes: volume.capacityBytes,
      takenMs: model.clock.nowMs(),
    }
    model.state.snapshots[snapshot.id] = snapshot
    return { snapshot: reply(snapshot) }
  },

  deleteSnapshot(model, { snapshotId }) {
    needController(model, 'CREATE_DELETE_SNAPSHOT')
    need(snapshotId, 'snapshot_id')
    delete model.state.snapshots[snapshotId]
    return {}
  },

  listSnapshots(model, request) {
    needController(model, 'LIST_SNAPSHOTS')
    const wanted = Object.values(model.state.snapshots).filter(
      ({ id, sourceVolumeId }) =>
        (!request.snapshotId || id === request.snapshotId) &&
        (!request.sourceVolumeId || sourceVolumeId === request.sourceVolumeId),
    )
    const { items, nextToken } = pageOf(wanted, model.state.made, request)
    return { entries: items.map((snapshot) => ({ snapshot: reply(snapshot) })), nextToken }
  },

  getSnapshot(model, { snapshotId }) {
    needController(model, 'GET_SNAPSHOT')
    need(snapshotId, 'snapshot_id')
    const snapshot = model.state.snapshots[snapshotId]
    return { snapshot: reply(snapshot ?? refuse('NOT_FOUND', `there is no snapshot "${snapshotId}"`)) }
  },
}

function reply(snapshot: FakeSnapshot): MessageInitShape<typeof SnapshotSchema> {
  return {
    snapshotId: snapshot.id,
    sourceVolumeId: snapshot.sourceVolumeId,
    sizeBytes: BigInt(snapshot.sizeBytes),
    creationTime: { seconds: BigInt(Math.floor(snapshot.takenMs / 1_000)) },
    readyToUse: true,
  }
}
