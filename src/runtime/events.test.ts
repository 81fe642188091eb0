import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import { eventKind } from '../api/kinds/event/event.ts'
import { namespaceKind } from '../api/kinds/namespace/namespace.ts'
import { storageClassKind } from '../api/kinds/storage-class/storage-class.ts'
import { ApiError } from '../api/status-error.ts'
import { inProcessClient } from '../apiserver/in-process/client.ts'
import { SYSTEM_USER } from '../apiserver/index.ts'
import { createServerFixture } from '../apiserver/server.fixture.ts'
import { createEventRecorder } from './events.ts'

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))
const warning = (message: string) => ({ type: 'Warning', reason: 'ProvisioningFailed', message }) as const
const claim = { metadata: { namespace: 'default', name: 'orders', uid: 'u1', resourceVersion: '7' } }

async function createHarness() {
  const { server, clock } = await createServerFixture()
  const client = inProcessClient(server.objects, SYSTEM_USER)
  const faults = { error: undefined as Error | undefined, losesResponses: false }
  const commits: number[] = []
  const failingClient = {
    ...client,
    commit: (async (...args: Parameters<typeof client.commit>) => {
      if (faults.error) throw faults.error
      commits.push(args[0].length)
      const results = await client.commit(...args)
      if (faults.losesResponses) throw new ApiError(503, 'ServiceUnavailable', 'the connection broke')
      return results
    }) as typeof client.commit,
    create: (async (...args: Parameters<typeof client.create>) => {
      if (faults.error) throw faults.error
      return client.create(...args)
    }) as typeof client.create,
  }
  const lines: string[] = []
  const logLine = (level: string) => (_fields: object, message: string) => void lines.push(`${level}: ${message}`)
  const log = { debug: logLine('debug'), info: logLine('info'), warn: logLine('warn'), error: logLine('error') }
  let state = 1
  const random = () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
  const recorder = createEventRecorder({
    client: failingClient,
    clock,
    random,
    log,
    component: 'stowage-test',
    instance: 'host-1',
  })
  const abort = new AbortController()
  const running = recorder.run(abort.signal)
  const recordWarning = (message: string, object: any = claim) =>
    recorder.record(persistentVolumeClaimKind, object, warning(message))
  const waitUntilIdle = async () => {
    for (let i = 0; i < 1_000 && recorder.stats().pending > 0; i++) await nextTurn()
    await nextTurn()
    await nextTurn()
  }
  const events = async () => (await client.list(eventKind)).items
  return { client, clock, recorder, faults, commits, lines, abort, running, recordWarning, waitUntilIdle, events }
}

describe('an event recorder', () => {
  it('records reason, message, object and reporting component', async () => {
    const { recordWarning, waitUntilIdle, events } = await createHarness()
    recordWarning('no space left')
    await waitUntilIdle()
    expect(await events()).toMatchObject([
      {
        metadata: { namespace: 'default', name: expect.stringMatching(/^orders\.[0-9a-f]{16}$/) },
        involvedObject: {
          kind: 'PersistentVolumeClaim',
          apiVersion: 'v1',
          namespace: 'default',
          name: 'orders',
          uid: 'u1',
        },
        type: 'Warning',
        reason: 'ProvisioningFailed',
        message: 'no space left',
        count: 1,
        reportingComponent: 'stowage-test',
        reportingInstance: 'host-1',
      },
    ])
  })

  it('SYS-11 increments the count of a repeated event', async () => {
    const { clock, recordWarning, waitUntilIdle, events } = await createHarness()
    for (let i = 0; i < 5; i++) {
      recordWarning('no space left')
      await waitUntilIdle()
      await clock.advance(60_000)
    }
    const [event, ...otherEvents] = await events()
    expect(otherEvents).toEqual([])
    expect(event?.count).toBe(5)
    expect(Date.parse(event!.lastTimestamp!) - Date.parse(event!.firstTimestamp!)).toBe(240_000)
  })

  it('creates a new event if the previous one was deleted', async () => {
    const { client, recordWarning, waitUntilIdle, events } = await createHarness()
    recordWarning('no space left')
    await waitUntilIdle()
    const [{ metadata }] = (await events()) as any
    await client.delete(eventKind, { namespace: 'default', name: metadata.name })
    recordWarning('no space left')
    await waitUntilIdle()
    expect(await events()).toHaveLength(1)
  })

  it('creates events of cluster-scoped objects in the namespace default', async () => {
    const { recorder, waitUntilIdle, events } = await createHarness()
    recorder.record(storageClassKind, { metadata: { name: 'fast', uid: 'u2' } }, warning('bad'))
    await waitUntilIdle()
    expect((await events())[0]?.metadata.namespace).toBe('default')
  })

  it('SYS-11 combines more than ten events that differ only in their message', async () => {
    const { recordWarning, waitUntilIdle, events } = await createHarness()
    for (let i = 0; i < 20; i++) {
      recordWarning(`attempt ${i} failed`)
      await waitUntilIdle()
    }
    const allEvents = await events()
    expect(allEvents).toHaveLength(11)
    const [combined] = allEvents.filter(({ message }) => message?.startsWith('(combined from similar events): '))
    expect(combined).toMatchObject({ count: 10, series: { count: 10 }, message: expect.stringContaining('attempt 19') })
  })

  it('limits the rate of events for each object separately', async () => {
    const { clock, recorder, recordWarning, waitUntilIdle } = await createHarness()
    for (let i = 0; i < 100; i++) {
      recordWarning('the same')
      await waitUntilIdle()
    }
    expect(recorder.stats()).toMatchObject({ sent: 25, dropped: 75 })
    recordWarning('another', { metadata: { ...claim.metadata, name: 'other', uid: 'u3' } })
    await waitUntilIdle()
    expect(recorder.stats().sent).toBe(26)
    await clock.advance(300_000)
    recordWarning('the same')
    await waitUntilIdle()
    expect(recorder.stats().sent).toBe(27)
  })

  it('keeps a limited number of pending events while the server is unavailable, and sends them later', async () => {
    const { clock, recorder, faults, recordWarning, waitUntilIdle, events } = await createHarness()
    faults.error = new ApiError(503, 'ServiceUnavailable', 'the server is unavailable')
    for (let i = 0; i < 10_000; i++)
      recordWarning('m', { metadata: { ...claim.metadata, name: `c${i}`, uid: `u${i}` } })
    expect(recorder.stats().pending).toBeLessThanOrEqual(5_000)
    faults.error = undefined
    for (let seconds = 0; seconds < 60 && recorder.stats().pending > 0; seconds++) await clock.advance(1_000)
    await waitUntilIdle()
    expect((await events()).length).toBeGreaterThan(4_900)
  })

  it('sends up to 64 pending events in one commit, and pauses between commits', async () => {
    const { clock, commits, recorder, recordWarning, events } = await createHarness()
    for (let i = 0; i < 100; i++) recordWarning('m', { metadata: { ...claim.metadata, name: `c${i}`, uid: `u${i}` } })
    for (let i = 0; i < 50; i++) await nextTurn()
    expect(commits).toEqual([64])
    expect(recorder.stats()).toMatchObject({ sent: 64, pending: 36, dropped: 0 })
    await clock.advance(250)
    for (let i = 0; i < 50; i++) await nextTurn()
    expect(commits).toEqual([64, 36])
    expect(await events()).toHaveLength(100)
  })

  it('sends eight events at a time to a server without atomic commits', async () => {
    const { client, clock } = await createHarness()
    const responders: (() => void)[] = []
    const create = (async (...args: Parameters<typeof client.create>) => {
      await new Promise<void>((resolve) => void responders.push(resolve))
      return client.create(...args)
    }) as typeof client.create
    const slowClient = { ...client, create, commitsAtomically: async () => false }
    const recorder = createEventRecorder({ client: slowClient, clock, random: Math.random, component: 'stowage-test' })
    for (let i = 0; i < 20; i++) {
      const metadata = { namespace: 'default', name: `claim-${i}`, uid: `uid-${i}` }
      recorder.record(persistentVolumeClaimKind, { metadata }, warning('no space left'))
    }
    const abort = new AbortController()
    const running = recorder.run(abort.signal)
    while (responders.length < 8) await nextTurn()
    for (let i = 0; i < 20; i++) await nextTurn()
    expect(responders).toHaveLength(8)
    while (recorder.stats().sent < 20) {
      for (const respond of responders.splice(0)) respond()
      await nextTurn()
    }
    abort.abort()
    await running
    expect((await client.list(eventKind)).items).toHaveLength(20)
  })

  it('lets a limited client prefer other requests to events until the queue of pending events is half full', async () => {
    const { client, clock } = await createHarness()
    const backgrounds: (boolean | undefined)[] = []
    const create = (async (...[kind, object, options]: Parameters<typeof client.create>) => {
      backgrounds.push(options?.isBackground)
      return client.create(kind, object, options)
    }) as typeof client.create
    const observedClient = { ...client, create, commitsAtomically: async () => false }
    const recorder = createEventRecorder({ client: observedClient, clock, random: Math.random, component: 'test' })
    for (let i = 0; i < 2_600; i++) {
      const metadata = { namespace: 'default', name: `claim-${i}`, uid: `uid-${i}` }
      recorder.record(persistentVolumeClaimKind, { metadata }, warning('no space left'))
    }
    const abort = new AbortController()
    const running = recorder.run(abort.signal)
    abort.abort()
    await running
    expect(backgrounds).toHaveLength(2_600)
    expect(backgrounds[0]).toBe(false)
    expect(backgrounds.at(-1)).toBe(true)
    expect(backgrounds.filter((isBackground) => !isBackground).length).toBeLessThanOrEqual(128)
  })

  it('sends the other pending events when the server rejects one', async () => {
    const { client, lines, recorder, recordWarning, waitUntilIdle, events } = await createHarness()
    await client.create(namespaceKind, { metadata: { name: 'going', finalizers: ['example.com/hold'] } })
    await client.delete(namespaceKind, { name: 'going' })
    recordWarning('a')
    recordWarning('b', { metadata: { ...claim.metadata, namespace: 'going' } })
    recordWarning('c')
    await waitUntilIdle()
    await waitUntilIdle()
    expect((await events()).map(({ message }) => message).sort()).toEqual(['a', 'c'])
    expect(recorder.stats()).toMatchObject({ sent: 2, dropped: 1 })
    expect(lines).toEqual(['debug: event not recorded: its namespace is being terminated'])
  })

  it('SYS-11 does not repeat an event if the response to a commit is lost', async () => {
    const { faults, recorder, recordWarning, waitUntilIdle, events } = await createHarness()
    faults.losesResponses = true
    recordWarning('a')
    recordWarning('b')
    await waitUntilIdle()
    await waitUntilIdle()
    expect((await events()).map(({ message }) => message).sort()).toEqual(['a', 'b'])
    expect(recorder.stats()).toMatchObject({ sent: 2, dropped: 0 })
  })

  it('drops an event that the server rejects, and sends later events', async () => {
    const { recorder, faults, recordWarning, waitUntilIdle, events } = await createHarness()
    faults.error = new ApiError(403, 'Forbidden', 'namespace is being terminated')
    recordWarning('a')
    await waitUntilIdle()
    faults.error = undefined
    recordWarning('b')
    await waitUntilIdle()
    expect(recorder.stats()).toMatchObject({ sent: 1, dropped: 1 })
    expect((await events()).map(({ message }) => message)).toEqual(['b'])
  })

  it('logs a warning for an event that could not be recorded, unless its namespace is terminating', async () => {
    const { client, faults, lines, recordWarning, waitUntilIdle } = await createHarness()
    await client.create(namespaceKind, { metadata: { name: 'going', finalizers: ['example.com/hold'] } })
    await client.delete(namespaceKind, { name: 'going' })
    recordWarning('a', { metadata: { ...claim.metadata, namespace: 'going' } })
    await waitUntilIdle()
    expect(lines).toEqual(['debug: event not recorded: its namespace is being terminated'])
    faults.error = new ApiError(403, 'Forbidden', 'no permission to create events')
    recordWarning('b')
    await waitUntilIdle()
    expect(lines.slice(1)).toEqual(['warn: event could not be recorded'])
  })

  it('SYS-29 keeps events while it lacks permission to record them, and drops them only when it stops', async () => {
    const { recorder, faults, lines, clock, recordWarning, abort, running, events } = await createHarness()
    const advance = async () => {
      await clock.advance(60_000)
      for (let turn = 0; turn < 20; turn++) await nextTurn()
    }
    faults.error = new ApiError(403, 'Forbidden', 'user cannot create resource "events" in API group ""')
    for (const message of ['a', 'b', 'a']) recordWarning(message)
    await advance()
    recordWarning('a')
    await advance()
    expect(recorder.stats()).toMatchObject({ sent: 0, dropped: 0, pending: 2 })
    expect(lines).toEqual(['warn: events cannot be recorded; they are kept until permission is granted'])
    faults.error = undefined
    await advance()
    expect((await events()).map(({ message, count }) => `${count} ${message}`).sort()).toEqual(['1 b', '3 a'])

    faults.error = new ApiError(403, 'Forbidden', 'user cannot create resource "events" in API group ""')
    recordWarning('c')
    await advance()
    abort.abort()
    await running
    expect(recorder.stats()).toMatchObject({ sent: 2, dropped: 1, pending: 0 })
  })

  it('sends pending events before it stops', async () => {
    const { abort, running, recordWarning, events } = await createHarness()
    for (let i = 0; i < 5; i++) recordWarning(`m${i}`)
    abort.abort()
    await running
    expect(await events()).toHaveLength(5)
  })

  it('truncates a message to 1,024 bytes', async () => {
    const { recordWarning, waitUntilIdle, events } = await createHarness()
    recordWarning('ü'.repeat(5_000))
    await waitUntilIdle()
    expect(Buffer.byteLength((await events())[0]!.message!)).toBeLessThanOrEqual(1_024)
  })
})
