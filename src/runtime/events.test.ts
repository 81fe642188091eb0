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

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
const warning = (message: string) => ({ type: 'Warning', reason: 'ProvisioningFailed', message }) as const
const claim = { metadata: { namespace: 'default', name: 'orders', uid: 'u1', resourceVersion: '7' } }

async function aRecorder() {
  const { server, clock } = await createServerFixture()
  const client = inProcessClient(server.objects, SYSTEM_USER)
  const failing = { error: undefined as Error | undefined, losesAnswers: false }
  const commits: number[] = []
  const guarded = {
    ...client,
    commit: (async (...args: Parameters<typeof client.commit>) => {
      if (failing.error) throw failing.error
      commits.push(args[0].length)
      const left = await client.commit(...args)
      if (failing.losesAnswers) throw new ApiError(503, 'ServiceUnavailable', 'the connection broke')
      return left
    }) as typeof client.commit,
    create: (async (...args: Parameters<typeof client.create>) => {
      if (failing.error) throw failing.error
      return client.create(...args)
    }) as typeof client.create,
  }
  const lines: string[] = []
  const line = (level: string) => (_fields: object, message: string) => void lines.push(`${level}: ${message}`)
  const log = { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
  let state = 1
  const random = () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
  const recorder = createEventRecorder({
    client: guarded,
    clock,
    random,
    log,
    component: 'stowage-test',
    instance: 'host-1',
  })
  const closing = new AbortController()
  const running = recorder.run(closing.signal)
  const tell = (message: string, about: any = claim) =>
    recorder.record(persistentVolumeClaimKind, about, warning(message))
  const quiet = async () => {
    for (let i = 0; i < 1_000 && recorder.stats().pending > 0; i++) await turn()
    await turn()
    await turn()
  }
  const events = async () => (await client.list(eventKind)).items
  return { client, clock, recorder, failing, commits, lines, closing, running, tell, quiet, events }
}

describe('an event recorder', () => {
  it('records reason, message, object and reporting component', async () => {
    const { tell, quiet, events } = await aRecorder()
    tell('no space left')
    await quiet()
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

  it('SYS-11 counts a repeated event on the first one', async () => {
    const { clock, tell, quiet, events } = await aRecorder()
    for (let i = 0; i < 5; i++) {
      tell('no space left')
      await quiet()
      await clock.advance(60_000)
    }
    const [event, ...others] = await events()
    expect(others).toEqual([])
    expect(event?.count).toBe(5)
    expect(Date.parse(event!.lastTimestamp!) - Date.parse(event!.firstTimestamp!)).toBe(240_000)
  })

  it('creates a new event when the first one has expired', async () => {
    const { client, tell, quiet, events } = await aRecorder()
    tell('no space left')
    await quiet()
    const [{ metadata }] = (await events()) as any
    await client.delete(eventKind, { namespace: 'default', name: metadata.name })
    tell('no space left')
    await quiet()
    expect(await events()).toHaveLength(1)
  })

  it('puts events of cluster-scoped objects into the namespace default', async () => {
    const { recorder, quiet, events } = await aRecorder()
    recorder.record(storageClassKind, { metadata: { name: 'fast', uid: 'u2' } }, warning('bad'))
    await quiet()
    expect((await events())[0]?.metadata.namespace).toBe('default')
  })

  it('SYS-11 combines events that differ only in their message once there are too many', async () => {
    const { tell, quiet, events } = await aRecorder()
    for (let i = 0; i < 20; i++) {
      tell(`attempt ${i} failed`)
      await quiet()
    }
    const all = await events()
    expect(all).toHaveLength(11)
    const [combined] = all.filter(({ message }) => message?.startsWith('(combined from similar events): '))
    expect(combined).toMatchObject({ count: 10, series: { count: 10 }, message: expect.stringContaining('attempt 19') })
  })

  it('limits the events of one object without limiting others', async () => {
    const { clock, recorder, tell, quiet } = await aRecorder()
    for (let i = 0; i < 100; i++) {
      tell('the same')
      await quiet()
    }
    expect(recorder.stats()).toMatchObject({ sent: 25, dropped: 75 })
    tell('another', { metadata: { ...claim.metadata, name: 'other', uid: 'u3' } })
    await quiet()
    expect(recorder.stats().sent).toBe(26)
    await clock.advance(300_000)
    tell('the same')
    await quiet()
    expect(recorder.stats().sent).toBe(27)
  })

  it('neither throws nor grows without bound while the server is unreachable', async () => {
    const { clock, recorder, failing, tell, quiet, events } = await aRecorder()
    failing.error = new ApiError(503, 'ServiceUnavailable', 'away')
    for (let i = 0; i < 10_000; i++) tell('m', { metadata: { ...claim.metadata, name: `c${i}`, uid: `u${i}` } })
    expect(recorder.stats().pending).toBeLessThanOrEqual(5_000)
    failing.error = undefined
    for (let seconds = 0; seconds < 60 && recorder.stats().pending > 0; seconds++) await clock.advance(1_000)
    await quiet()
    expect((await events()).length).toBeGreaterThan(4_900)
  })

  it('SYS-11 sends pending events in one commit, and pauses between commits', async () => {
    const { clock, commits, recorder, tell, events } = await aRecorder()
    for (let i = 0; i < 100; i++) tell('m', { metadata: { ...claim.metadata, name: `c${i}`, uid: `u${i}` } })
    for (let i = 0; i < 50; i++) await turn()
    expect(commits).toEqual([64])
    expect(recorder.stats()).toMatchObject({ sent: 64, pending: 36, dropped: 0 })
    await clock.advance(250)
    for (let i = 0; i < 50; i++) await turn()
    expect(commits).toEqual([64, 36])
    expect(await events()).toHaveLength(100)
  })

  it('SYS-11 sends the other pending events when the server rejects one', async () => {
    const { client, lines, recorder, tell, quiet, events } = await aRecorder()
    await client.create(namespaceKind, { metadata: { name: 'going', finalizers: ['example.com/hold'] } })
    await client.delete(namespaceKind, { name: 'going' })
    tell('a')
    tell('b', { metadata: { ...claim.metadata, namespace: 'going' } })
    tell('c')
    await quiet()
    await quiet()
    expect((await events()).map(({ message }) => message).sort()).toEqual(['a', 'c'])
    expect(recorder.stats()).toMatchObject({ sent: 2, dropped: 1 })
    expect(lines).toEqual(['debug: event not recorded: its namespace is being terminated'])
  })

  it('SYS-11 records nothing twice when the response to a commit is lost', async () => {
    const { failing, recorder, tell, quiet, events } = await aRecorder()
    failing.losesAnswers = true
    tell('a')
    tell('b')
    await quiet()
    await quiet()
    expect((await events()).map(({ message }) => message).sort()).toEqual(['a', 'b'])
    expect(recorder.stats()).toMatchObject({ sent: 2, dropped: 0 })
  })

  it('drops an event the server rejects without blocking the others', async () => {
    const { recorder, failing, tell, quiet, events } = await aRecorder()
    failing.error = new ApiError(403, 'Forbidden', 'namespace is being terminated')
    tell('a')
    await quiet()
    failing.error = undefined
    tell('b')
    await quiet()
    expect(recorder.stats()).toMatchObject({ sent: 1, dropped: 1 })
    expect((await events()).map(({ message }) => message)).toEqual(['b'])
  })

  it('SYS-11 logs a warning for an event it could not record, unless its namespace is terminating', async () => {
    const { client, failing, lines, tell, quiet } = await aRecorder()
    await client.create(namespaceKind, { metadata: { name: 'going', finalizers: ['example.com/hold'] } })
    await client.delete(namespaceKind, { name: 'going' })
    tell('a', { metadata: { ...claim.metadata, namespace: 'going' } })
    await quiet()
    expect(lines).toEqual(['debug: event not recorded: its namespace is being terminated'])
    failing.error = new ApiError(403, 'Forbidden', 'no right to create events')
    tell('b')
    await quiet()
    expect(lines.slice(1)).toEqual(['warn: event could not be recorded'])
  })

  it('sends pending events before it stops', async () => {
    const { closing, running, tell, events } = await aRecorder()
    for (let i = 0; i < 5; i++) tell(`m${i}`)
    closing.abort()
    await running
    expect(await events()).toHaveLength(5)
  })

  it('truncates a message to the size limit of an event', async () => {
    const { tell, quiet, events } = await aRecorder()
    tell('ü'.repeat(5_000))
    await quiet()
    expect(Buffer.byteLength((await events())[0]!.message!)).toBeLessThanOrEqual(1_024)
  })
})
