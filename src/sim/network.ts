// The way between a process and the API server: requests and replies take time, get lost, come twice, or meet a
// server that is busy, failing or gone. To the process it is just a Client.
import { expired, tooManyRequests, unavailable } from '../api/status-error.ts'
import type { Client, WatchEvent } from '../client/client.ts'
import type { Life } from './process.ts'
import type { World } from './world.ts'

export interface NetworkFaults {
  latencyMs: number
  /** The request never arrives. */
  loseRequest: number
  /** The request is carried out, but the reply never arrives. */
  loseReply: number
  /** The request arrives twice. */
  duplicate: number
  /** The server answers 429 or 503 without doing anything. */
  refuse: number
  /** A watch breaks, per event. */
  breakWatch: number
  /** A watch goes silent, per event: nothing more comes, and nobody says so. */
  silenceWatch: number
}

export const NO_FAULTS: NetworkFaults = {
  latencyMs: 5,
  loseRequest: 0,
  loseReply: 0,
  duplicate: 0,
  refuse: 0,
  breakWatch: 0,
  silenceWatch: 0,
}

/** Who sends: a process has a name. */
interface Sender {
  readonly name?: string
}

/** A client waits this long for a reply that is not coming. */
const REPLY_TIMEOUT_MS = 10_000
/** A stream without a word for this long is given up, as the HTTP client does. */
const SILENCE_MS_MAX = 90_000
/** How soon, at most, a client notices that the server it is connected to has died. */
const NOTICE_MS_MAX = 5_000

export interface Network {
  readonly faults: NetworkFaults
  /** The client of one life of a process. `server` gives the client of the server's current life, if it has one. */
  clientFor(life: Life & Sender): Client
  /** Whoever has a stream open will notice. */
  serverDied(): void
  /** What one process loses of everything it sends and is sent, besides; by its name. */
  readonly losing: Map<string, number>
  /** Who resumes a watch is told once that it is too late: everything has to be listed again. */
  cutHistory(): void
}

export function createNetwork(world: World, server: () => Client | undefined): Network {
  const dice = world.dice('network')
  const faults: NetworkFaults = { ...NO_FAULTS }
  /** Of each stream that waits for its next event: what to do when the server dies. */
  const waiting = new Set<() => void>()
  const losing = new Map<string, number>()
  /** Streams that were open when history was cut. */
  let cut = 0
  const delay = () => new Promise<void>((resolve) => void world.schedule(faults.latencyMs * dice(), resolve))
  const later = (ms: number) => new Promise<void>((resolve) => void world.schedule(ms, resolve))
  const noReply = async (): Promise<never> => {
    await later(REPLY_TIMEOUT_MS)
    throw unavailable('no reply came')
  }

  const happens = (rate: number, what: string): boolean => {
    const does = dice() < rate
    if (does) world.tally(what)
    return does
  }
  const losesOf = ({ name = '' }: Sender): number => losing.get(name) ?? 0

  /** One request on its way there and back. */
  async function exchange<T>(life: Sender, call: (client: Client) => Promise<T>): Promise<T> {
    await delay()
    if (happens(faults.loseRequest + losesOf(life), 'request lost')) return noReply()
    const client = server()
    if (!client) throw unavailable('connection refused')
    if (happens(faults.refuse, 'refused 429 or 503'))
      throw dice() < 0.5 ? tooManyRequests('too busy') : unavailable('failing')
    const twice = happens(faults.duplicate, 'request twice')
    const outcome = call(client).then(
      (value) => ({ ok: true as const, value }),
      (error: unknown) => ({ ok: false as const, error }),
    )
    // A server that dies in the middle never answers.
    const settled = await orTooLate(outcome)
    if (twice) void call(client).catch(() => {})
    if (!settled || server() !== client) return noReply()
    if (happens(faults.loseReply + losesOf(life), 'reply lost')) return noReply()
    await delay()
    if (settled.ok) return settled.value
    if ((settled.error as { code?: number }).code === 409) world.tally('conflict')
    throw settled.error
  }

  async function* stream<T>(
    life: Life & Sender,
    open: (client: Client) => AsyncIterable<WatchEvent<T>>,
    { isResumed, hasState }: { readonly isResumed: boolean; readonly hasState: boolean },
  ): AsyncIterable<WatchEvent<T>> {
    await life.pass(delay())
    const client = server()
    if (!client || happens(faults.refuse, 'refused 429 or 503')) throw unavailable('connection refused')
    if (isResumed && cut > 0) {
      cut--
      world.tally('410 for a watch')
      throw expired('too old resource version: history was cut')
    }
    let isState = hasState
    const events = open(client)[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await life.pass(patiently(events.next(), client).finally(() => life.alive || events.return?.()))
        if (next.done) return
        if (happens(faults.breakWatch + losesOf(life), 'watch broken')) throw unavailable('the stream broke')
        if (happens(faults.silenceWatch, 'watch silent')) {
          await life.pass(later(SILENCE_MS_MAX))
          throw unavailable('the stream is silent')
        }
        // A state comes in one piece; every change has a way of its own.
        if (next.value.type === 'bookmark') isState = false
        if (!isState) await life.pass(delay())
        yield next.value
      }
    } finally {
      void events.return?.()
    }
  }

  const orTooLate = <T>(outcome: Promise<T>): Promise<T | undefined> =>
    new Promise((resolve) => {
      const cancel = world.schedule(REPLY_TIMEOUT_MS, () => resolve(undefined))
      void outcome.then((settled) => {
        cancel()
        resolve(settled)
      })
    })

  /** Waits for the next event until the server is gone, or for as long as a client bears silence. */
  function patiently<T>(next: Promise<T>, client: Client): Promise<T> {
    return new Promise((resolve, reject) => {
      const notice = () => {
        world.schedule(NOTICE_MS_MAX * dice(), () => end(() => reject(unavailable('the connection was reset'))))
      }
      const end = (settle: () => void) => {
        cancel()
        waiting.delete(notice)
        settle()
      }
      const cancel = world.schedule(SILENCE_MS_MAX, () => end(() => reject(unavailable('the stream is silent'))))
      waiting.add(notice)
      if (server() !== client) notice()
      next.then(
        (value) => end(() => resolve(value)),
        (error) => end(() => reject(error)),
      )
    })
  }

  return {
    faults,
    losing,
    cutHistory() {
      cut = waiting.size
      for (const notice of waiting) notice()
    },
    serverDied() {
      for (const notice of waiting) notice()
    },
    clientFor: (life) => ({
      get: (...args) => life.pass(exchange(life, (client) => client.get(...args))),
      list: (...args) => life.pass(exchange(life, (client) => client.list(...args))),
      create: (...args) => life.pass(exchange(life, (client) => client.create(...args))),
      update: (...args) => life.pass(exchange(life, (client) => client.update(...args))),
      patch: (...args) => life.pass(exchange(life, (client) => client.patch(...args))),
      delete: (...args) => life.pass(exchange(life, (client) => client.delete(...args))),
      commit: (...args) => life.pass(exchange(life, (client) => client.commit(...args))),
      serves: (...args) => life.pass(exchange(life, (client) => client.serves(...args))),
      watch: (kind, request) =>
        stream(life, (client) => client.watch(kind, request), {
          isResumed: request.resourceVersion !== undefined,
          hasState: request.sendInitialEvents === true,
        }),
      commitsAtomically: async () => (await server()?.commitsAtomically()) ?? true,
    }),
  }
}
