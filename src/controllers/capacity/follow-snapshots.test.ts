import { describe, expect, it } from 'vitest'
import { ApiError } from '../../api/status-error.ts'
import type { Client, WatchEvent, WatchRequest } from '../../client/index.ts'
import { SNAPSHOT_GROUP, type VolumeSnapshotContent } from '../provisioning/csi/snapshot-kinds.ts'
import { createCapacityFixture, DRIVER, GI } from './capacity.fixture.ts'

/**
 * Returns a client wrapper that serves lists and watches of VolumeSnapshotContents, and a function that sends watch events.
 * A stock server does not send initial events.
 */
function createSnapshotServer(isStock: boolean) {
  const pendingResolvers: ((event: WatchEvent<VolumeSnapshotContent>) => void)[] = []
  const existingContent = {
    metadata: { name: 'before', uid: 'before', resourceVersion: '1' },
    spec: { driver: DRIVER },
  }
  const events: WatchEvent<VolumeSnapshotContent>[] = isStock
    ? []
    : [
        { type: 'added', object: existingContent },
        { type: 'bookmark', resourceVersion: '1', endsInitialEvents: true },
      ]
  const emit = (event: WatchEvent<VolumeSnapshotContent>) => {
    const resolveNext = pendingResolvers.shift()
    if (resolveNext) resolveNext(event)
    else events.push(event)
  }
  async function* watch({
    signal,
    sendInitialEvents,
  }: WatchRequest): AsyncGenerator<WatchEvent<VolumeSnapshotContent>> {
    if (isStock && sendInitialEvents) throw new ApiError(422, 'Invalid', 'sendInitialEvents is forbidden')
    const whenAborted = new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined)))
    while (!signal.aborted) {
      const event =
        events.shift() ??
        (await Promise.race([
          whenAborted,
          new Promise<WatchEvent<VolumeSnapshotContent>>((resolve) => pendingResolvers.push(resolve)),
        ]))
      if (event) yield event
    }
  }
  let version = 1
  return {
    wrapClient: (client: Client): Client => ({
      ...client,
      serves: async (kind) => kind.group === SNAPSHOT_GROUP || client.serves(kind),
      list: async (kind, request) =>
        kind.group === SNAPSHOT_GROUP
          ? ({ items: [existingContent], resourceVersion: '1' } as never)
          : client.list(kind, request),
      watch: (kind, request) => (kind.group === SNAPSHOT_GROUP ? watch(request) : client.watch(kind, request)) as never,
    }),
    send: (type: 'added' | 'modified' | 'deleted', volumeHandle: string, driver = DRIVER, status: object = {}) => {
      const metadata = { name: `content-of-${volumeHandle}`, uid: volumeHandle, resourceVersion: String(++version) }
      const spec: object = { driver, source: { volumeHandle } }
      emit({ type, object: { metadata, spec, status } })
    },
  }
}

describe('followSnapshots', () => {
  it('CAP-8 refreshes the segment of the volume, or all segments if the volume is unknown, when a snapshot is created, becomes ready or is deleted', async () => {
    const fixture = await createCapacityFixture()
    await fixture.createNode('n1', { zone: 'a' })
    await fixture.createNode('n2', { zone: 'b' })
    await fixture.createClass('fast')
    const snapshots = createSnapshotServer(fixture.server.isStock)
    await fixture.start({ wrapClient: snapshots.wrapClient })
    await fixture.advance(1_000)
    expect(fixture.countGetCapacityCalls()).toBe(2) // an existing snapshot does not cause a call
    await fixture.createVolume('v', GI, 'a')
    await fixture.advance(100)
    const [handle] = Object.keys(fixture.fake.state.volumes) as [string]
    const countCallsAfter = async (change: () => void) => {
      const callsBefore = fixture.countGetCapacityCalls()
      change()
      await fixture.settle()
      await fixture.advance(100)
      return fixture.countGetCapacityCalls() - callsBefore
    }
    expect(await countCallsAfter(() => snapshots.send('added', handle))).toBe(1)
    expect(await countCallsAfter(() => snapshots.send('modified', handle))).toBe(0)
    expect(await countCallsAfter(() => snapshots.send('modified', handle, DRIVER, { readyToUse: true }))).toBe(1)
    expect(await countCallsAfter(() => snapshots.send('deleted', handle))).toBe(1)
    expect(await countCallsAfter(() => snapshots.send('added', 'foreign', 'other.example'))).toBe(0)
    // The segment of a deleted volume is unknown, so all items are refreshed.
    expect(await countCallsAfter(() => snapshots.send('added', 'deleted-volume'))).toBe(2)
  })
})
