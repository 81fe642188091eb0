// Snapshots of the fake driver. They are ready immediately, use no capacity, and outlive their source volume.
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Controller, SnapshotSchema } from '../gen/csi_pb.js'
import { fail, getVolume, type Handlers, requireControllerCapability, requireField } from './model.ts'
import { paginate } from './page.ts'
import type { FakeSnapshot } from './state.ts'

type SnapshotHandlers = Pick<
  Handlers<typeof Controller>,
  'createSnapshot' | 'deleteSnapshot' | 'listSnapshots' | 'getSnapshot'
>

export const snapshotHandlers: SnapshotHandlers = {
  createSnapshot(model, request) {
    requireControllerCapability(model, 'CREATE_DELETE_SNAPSHOT')
    requireField(request.name, 'name')
    requireField(request.sourceVolumeId, 'source_volume_id')
    const existingSnapshot = Object.values(model.state.snapshots).find(({ name }) => name === request.name)
    if (existingSnapshot) {
      if (existingSnapshot.sourceVolumeId !== request.sourceVolumeId) {
        fail('ALREADY_EXISTS', `snapshot "${request.name}" exists for another volume`)
      }
      return { snapshot: toSnapshotMessage(existingSnapshot) }
    }
    const volume = getVolume(model, request.sourceVolumeId)
    const order = ++model.state.sequence
    const snapshot: FakeSnapshot = {
      id: `snap-${order}`,
      name: request.name,
      order,
      sourceVolumeId: volume.id,
      sizeBytes: volume.capacityBytes,
      createdMs: model.clock.nowMs(),
    }
    model.state.snapshots[snapshot.id] = snapshot
    return { snapshot: toSnapshotMessage(snapshot) }
  },

  deleteSnapshot(model, { snapshotId }) {
    requireControllerCapability(model, 'CREATE_DELETE_SNAPSHOT')
    requireField(snapshotId, 'snapshot_id')
    delete model.state.snapshots[snapshotId]
    return {}
  },

  listSnapshots(model, request) {
    requireControllerCapability(model, 'LIST_SNAPSHOTS')
    const matchingSnapshots = Object.values(model.state.snapshots).filter(
      ({ id, sourceVolumeId }) =>
        (!request.snapshotId || id === request.snapshotId) &&
        (!request.sourceVolumeId || sourceVolumeId === request.sourceVolumeId),
    )
    const { items, nextToken } = paginate(matchingSnapshots, model.state.sequence, request)
    return { entries: items.map((snapshot) => ({ snapshot: toSnapshotMessage(snapshot) })), nextToken }
  },

  getSnapshot(model, { snapshotId }) {
    requireControllerCapability(model, 'GET_SNAPSHOT')
    requireField(snapshotId, 'snapshot_id')
    const snapshot = model.state.snapshots[snapshotId]
    return { snapshot: toSnapshotMessage(snapshot ?? fail('NOT_FOUND', `snapshot "${snapshotId}" does not exist`)) }
  },
}

function toSnapshotMessage(snapshot: FakeSnapshot): MessageInitShape<typeof SnapshotSchema> {
  return {
    snapshotId: snapshot.id,
    sourceVolumeId: snapshot.sourceVolumeId,
    sizeBytes: BigInt(snapshot.sizeBytes),
    creationTime: { seconds: BigInt(Math.floor(snapshot.createdMs / 1_000)) },
    readyToUse: true,
  }
}
