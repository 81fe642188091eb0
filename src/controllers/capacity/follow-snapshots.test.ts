import { describe, expect, it } from 'vitest'
import type { Client, WatchEvent } from '../../client/index.ts'
import { SNAPSHOT_GROUP, type VolumeSnapshotContent } from '../provisioning/csi/snapshot-kinds.ts'
import { createCapacityFixture, DRIVER, GI } from './capacity.fixture.ts'

/** Adds a watch of VolumeSnapshotContents to a client. */
function withSnapshots() {
  const waiting: ((event: WatchEvent<VolumeSnapshotContent>) => void)[] = []
  const before = { metadata: { name: 'before', uid: 'before', resourceVersion: '1' }, spec: { driver: DRIVER } }
  const events: WatchEvent<VolumeSnapshotContent>[] = [
    { type: 'added', object: before },
    { type: 'bookmark', resourceVersion: '1', endsInitialEvents: true },
  ]
  const emit = (event: WatchEvent<VolumeSnapshotContent>) => {
    const next = waiting.shift()
    if (next) next(event)
    else events.push(event)
  }
  async function* watch(signal: AbortSignal): AsyncGenerator<WatchEvent<VolumeSnapshotContent>> {
    const over = new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined)))
    while (!signal.aborted) {
      const event =
        events.shift() ??
        (await Promise.race([over, new Promise<WatchEvent<VolumeSnapshotContent>>((one) => waiting.push(one))]))
      if (event) yield event
    }
  }
  let version = 1
  return {
    around: (client: Client): Client => ({
      ...client,
      serves: async (kind) => kind.group === SNAPSHOT_GROUP || client.serves(kind),
      watch: (kind, request) =>
        (kind.group === SNAPSHOT_GROUP ? watch(request.signal) : client.watch(kind, request)) as never,
    }),
    send: (type: 'added' | 'modified' | 'deleted', volumeHandle: string, driver = DRIVER, status: object = {}) => {
      const metadata = { name: `content-of-${volumeHandle}`, uid: volumeHandle, resourceVersion: String(++version) }
      const spec: object = { driver, source: { volumeHandle } }
      emit({ type, object: { metadata, spec, status } })
    },
  }
}

describe('snapshots, where they are served', () => {
  it('CAP-8 refresh only the segment of their volume when created, ready or deleted', async () => {
    const fixture = await createCapacityFixture()
    await fixture.aNode('n1', { zone: 'a' })
    await fixture.aNode('n2', { zone: 'b' })
    await fixture.aClass('fast')
    const snapshots = withSnapshots()
    await fixture.start({ around: snapshots.around })
    await fixture.pass(1_000)
    expect(fixture.getCapacityCalls()).toBe(2) // an existing snapshot is no change
    await fixture.aVolume('v', GI, 'a')
    await fixture.pass(100)
    const [handle] = Object.keys(fixture.fake.state.volumes) as [string]
    const callsAfter = async (change: () => void) => {
      const before = fixture.getCapacityCalls()
      change()
      await fixture.settle()
      await fixture.pass(100)
      return fixture.getCapacityCalls() - before
    }
    expect(await callsAfter(() => snapshots.send('added', handle))).toBe(1)
    expect(await callsAfter(() => snapshots.send('modified', handle))).toBe(0)
    expect(await callsAfter(() => snapshots.send('modified', handle, DRIVER, { readyToUse: true }))).toBe(1)
    expect(await callsAfter(() => snapshots.send('deleted', handle))).toBe(1)
    expect(await callsAfter(() => snapshots.send('added', 'theirs', 'other.example'))).toBe(0)
    // The segment of a deleted volume is unknown, so all items are refreshed.
    expect(await callsAfter(() => snapshots.send('added', 'volume-that-is-gone'))).toBe(2)
  })
})
