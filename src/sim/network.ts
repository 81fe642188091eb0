// The way between a process and the API server: requests and replies take time, get lost, come twice, or meet a
// server that is busy, failing or gone. To the process it is just a Client.
import { tooManyRequests, unavailable } from '../api/status-error.ts'
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

/** A client waits this long for a reply that is not coming. */
const REPLY_TIMEOUT_MS = 10_000
/** A stream without a word for this long is given up, as the HTTP client does. */
const SILENCE_MS_MAX = 90_000
/** How soon, at most, a client notices that the server it is connected to has died. */
const NOTICE_MS_MAX = 5_000

export interface Network {
  readonly faults: NetworkFaults
  /** The client of one life of a process. `server` gives the client of the server's current life, if it has one. */
  clientFor(life: Life): Client
  /** Whoever has a stream open will notice. */
  serverDied(): void
}

export function createNetwork(world: World, server: () => Client | undefined): Network {
  const dice = world.dice('network')
  const faults: NetworkFaults = { ...NO_FAULTS }
  /** Of each stream that waits for its next event: what to do when the server dies. */
  const waiting = new Set<() => void>()
  const delay = () => new Promise<void>((resolve) => void world.schedule(faults.latencyMs * dice(), resolve))
  const later = (ms: number) => new Promise<void>((resolve) => void world.schedule(ms, resolve))
  const noReply = async (): Promise<never> => {
    await later(REPLY_TIMEOUT_MS)
    throw unavailable('no reply came')
  }

  /** One request on its way there and back. */
  async function exchange<T>(call: (client: Client) => Promise<T>): Promise<T> {
    await delay()
    if (dice() < faults.loseRequest) return noReply()
    const client = server()
    if (!client) throw unavailable('connection refused')
    if (dice() < faults.refuse) throw dice() < 0.5 ? tooManyRequests('too busy') : unavailable('failing')
    const twice = dice() < faults.duplicate
    const outcome = call(client).then(
      (value) => ({ ok: true as const, value }),
      (error: unknown) => ({ ok: false as const, error }),
    )
    // A server that dies in the middle never answers.
    const settled = await Promise.race([outcome, later(REPLY_TIMEOUT_MS).then(() => undefined)])
    if (twice) void call(client).catch(() => {})
    if (!settled || server() !== client) return noReply()
    if (dice() < faults.loseReply) return noReply()
    await delay()
    if (settled.ok) return settled.value
    throw settled.error
  }

  async function* stream<T>(
    life: Life,
    open: (client: Client) => AsyncIterable<WatchEvent<T>>,
  ): AsyncIterable<WatchEvent<T>> {
    await life.pass(delay())
    const client = server()
    if (!client || dice() < faults.refuse) throw unavailable('connection refused')
    const events = open(client)[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await life.pass(patiently(events.next(), client))
        if (next.done) return
        if (dice() < faults.breakWatch) throw unavailable('the stream broke')
        if (dice() < faults.silenceWatch) {
          await life.pass(later(SILENCE_MS_MAX))
          throw unavailable('the stream is silent')
        }
        await life.pass(delay())
        yield next.value
      }
    } finally {
      void events.return?.()
    }
  }

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
    serverDied() {
      for (const notice of waiting) notice()
    },
    clientFor: (life) => ({
      get: (...args) => life.pass(exchange((client) => client.get(...args))),
      list: (...args) => life.pass(exchange((client) => client.list(...args))),
      create: (...args) => life.pass(exchange((client) => client.create(...args))),
      update: (...args) => life.pass(exchange((client) => client.update(...args))),
      patch: (...args) => life.pass(exchange((client) => client.patch(...args))),
      delete: (...args) => life.pass(exchange((client) => client.delete(...args))),
      commit: (...args) => life.pass(exchange((client) => client.commit(...args))),
      serves: (...args) => life.pass(exchange((client) => client.serves(...args))),
      watch: (...args) => stream(life, (client) => client.watch(...args)),
      commitsAtomically: async () => (await server()?.commitsAtomically()) ?? true,
    }),
  }
}
