import { describe, expect, it } from 'vitest'
import type { Client, WatchEvent } from '../../client/index.ts'
import { SNAPSHOT_GROUP } from '../provisioning/csi/snapshot-kinds.ts'
import { createCapacityFixture, DRIVER, GI } from './capacity.fixture.ts'

/** A server that has snapshots beside what it has. */
function withSnapshots() {
  const waiting: ((event: WatchEvent<any>) => void)[] = []
  const before = { metadata: { name: 'before', uid: 'before', resourceVersion: '1' }, spec: { driver: DRIVER } }
  const events: WatchEvent<any>[] = [
    { type: 'added', object: before },
    { type: 'bookmark', resourceVersion: '1', endsInitialEvents: true },
  ]
  const tell = (event: WatchEvent<any>) => {
    const next = waiting.shift()
    if (next) next(event)
    else events.push(event)
  }
  async function* watch(signal: AbortSignal): AsyncGenerator<WatchEvent<any>> {
    const over = new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined)))
    while (!signal.aborted) {
      const event =
        events.shift() ?? (await Promise.race([over, new Promise<WatchEvent<any>>((one) => waiting.push(one))]))
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
    tell: (type: 'added' | 'modified' | 'deleted', volumeHandle: string, driver = DRIVER, status: object = {}) => {
      const metadata = { name: `content-of-${volumeHandle}`, uid: volumeHandle, resourceVersion: String(++version) }
      tell({ type, object: { metadata, spec: { driver, source: { volumeHandle } }, status } })
    },
  }
}

describe('snapshots, where they are served', () => {
  it('CAP-8 refresh only the segment of their volume when created, ready or deleted', async () => {
    const trial = await createCapacityFixture()
    await trial.aNode('n1', { zone: 'a' })
    await trial.aNode('n2', { zone: 'b' })
    await trial.aClass('fast')
    const snapshots = withSnapshots()
    await trial.start({ around: snapshots.around })
    await trial.pass(1_000)
    expect(trial.asked()).toBe(2) // the snapshot that was there before is no change
    await trial.aVolume('v', GI, 'a')
    await trial.pass(100)
    const [handle] = Object.keys(trial.fake.state.volumes) as [string]
    const askedBy = async (tell: () => void) => {
      const before = trial.asked()
      tell()
      await trial.settle()
      await trial.pass(100)
      return trial.asked() - before
    }
    expect(await askedBy(() => snapshots.tell('added', handle))).toBe(1)
    expect(await askedBy(() => snapshots.tell('modified', handle))).toBe(0)
    expect(await askedBy(() => snapshots.tell('modified', handle, DRIVER, { readyToUse: true }))).toBe(1)
    expect(await askedBy(() => snapshots.tell('deleted', handle))).toBe(1)
    expect(await askedBy(() => snapshots.tell('added', 'theirs', 'other.example'))).toBe(0)
    // Nobody knows where it lies.
    expect(await askedBy(() => snapshots.tell('added', 'volume-that-is-gone'))).toBe(2)
  })
})
