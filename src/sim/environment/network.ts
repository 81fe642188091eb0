// The network between a process and the API server: requests and replies are delayed, lost or duplicated, and the server
// may be busy, failing or down. To the process it is a Client.
import type { KubeObject } from '../../api/kind.ts'
import { expired, tooManyRequests, unavailable } from '../../api/status-error.ts'
import type { Client, WatchEvent } from '../../client/client.ts'
import type { Incarnation } from './process.ts'
import type { Simulation } from './simulation.ts'

export interface NetworkFaults {
  latencyMs: number
  /** Probability that the request never arrives. */
  loseRequest: number
  /** Probability that the request is executed, but the reply never arrives. */
  loseReply: number
  /** Probability that the request arrives twice. */
  duplicate: number
  /** Probability that the server returns 429 or 503 and does nothing. */
  refuse: number
  /** Probability per event that the watch breaks. */
  breakWatch: number
  /** Probability per event that the watch delivers nothing more, without an error. */
  silenceWatch: number
}

const NO_FAULTS: NetworkFaults = {
  latencyMs: 5,
  loseRequest: 0,
  loseReply: 0,
  duplicate: 0,
  refuse: 0,
  breakWatch: 0,
  silenceWatch: 0,
}

/** The share of messages that a process loses. */
export interface Losses {
  readonly share: number
  /** Whether only replies to writes are lost: the writes are executed. */
  readonly onlyReplies?: boolean
}

/** The process that sends a request. */
interface Sender {
  readonly name?: string
}

/** How long a client waits for a reply. */
const REPLY_TIMEOUT_MS = 10_000
/** A watch without any event for this long is closed, as the HTTP client does. */
const SILENCE_MS_MAX = 90_000
/** The longest time until a client notices that the server has crashed. */
const NOTICE_MS_MAX = 5_000

export interface Network {
  readonly faults: NetworkFaults
  /** Returns the client of one incarnation of a process. `adaptServer` wraps the server for this client. */
  clientFor(incarnation: Incarnation & Sender, adaptServer?: (server: Client) => Client): Client
  /** Breaks every open watch. */
  breakWatches(): void
  /** Additional losses by process name. */
  readonly lossesByProcess: Map<string, Losses>
  /** The names of processes that no message reaches or leaves. */
  readonly cutOffProcesses: Set<string>
  /**
   * For `ms`, the watches of one process or all, of one kind or all, deliver nothing. Then they break, and resuming them
   * fails with 410, so clients must list everything again.
   */
  cutHistory(ms: number, selector?: StreamSelector): void
}

interface StreamSelector {
  readonly process?: string | undefined
  /** `persistentvolumes` … */
  readonly plural?: string | undefined
}

/** An open watch. */
interface OpenStream {
  /** The name of the process. */
  readonly name: string
  readonly plural: string
  /** Called when the connection breaks, while the watch waits for its next event. */
  onBreak?: () => void
}

/** Periodic bookmarks change no state, so they are delivered without a delay. */
const isPeriodicBookmark = (event: WatchEvent<KubeObject>): boolean =>
  event.type === 'bookmark' && !event.endsInitialEvents

export function createNetwork(simulation: Simulation, server: () => Client | undefined): Network {
  const random = simulation.random('network')
  const faults: NetworkFaults = { ...NO_FAULTS }
  const streams = new Set<OpenStream>()
  const lossesByProcess = new Map<string, Losses>()
  const cutOffProcesses = new Set<string>()
  /** Active cuts. */
  let cuts: (StreamSelector & { readonly untilMs: number })[] = []
  /** How many resumed watches still fail with 410, by process and kind. */
  const expiredByStream = new Map<string, number>()
  const delay = () => new Promise<void>((resolve) => void simulation.schedule(faults.latencyMs * random(), resolve))
  const wait = (ms: number) => new Promise<void>((resolve) => void simulation.schedule(ms, resolve))
  const noReply = async (): Promise<never> => {
    await wait(REPLY_TIMEOUT_MS)
    throw unavailable('no reply came')
  }

  const happens = (rate: number, fault: string): boolean => {
    const occurs = random() < rate
    if (occurs) simulation.tally(fault)
    return occurs
  }
  const lossRateOf = ({ name = '' }: Sender): number => {
    if (cutOffProcesses.has(name)) return 1
    const losses = lossesByProcess.get(name)
    return losses && !losses.onlyReplies ? losses.share : 0
  }

  /** Sends one request and returns the reply. */
  async function exchange<T>(incarnation: Sender, call: (client: Client) => Promise<T>, isWrite = false): Promise<T> {
    await delay()
    if (happens(faults.loseRequest + lossRateOf(incarnation), 'request lost')) return noReply()
    const client = server()
    if (!client) throw unavailable('connection refused')
    if (happens(faults.refuse, 'refused 429 or 503'))
      throw random() < 0.5 ? tooManyRequests('too busy') : unavailable('failing')
    const isDuplicated = happens(faults.duplicate, 'request twice')
    const outcome = call(client).then(
      (value) => ({ ok: true as const, value }),
      (error: unknown) => ({ ok: false as const, error }),
    )
    // A server that crashes during the request never responds.
    const result = await waitForOutcome(outcome)
    if (isDuplicated) void call(client).catch(() => {})
    if (!result || server() !== client) return noReply()
    const losses = lossesByProcess.get(incarnation.name ?? '')
    const lossRate = cutOffProcesses.has(incarnation.name ?? '')
      ? 1
      : losses && (isWrite || !losses.onlyReplies)
        ? losses.share
        : 0
    if (happens(faults.loseReply + lossRate, 'reply lost')) return noReply()
    await delay()
    if (result.ok) return result.value
    if ((result.error as { code?: number }).code === 409) simulation.tally('conflict')
    throw result.error
  }

  const matches = ({ name, plural }: OpenStream, selector: StreamSelector): boolean =>
    name === (selector.process ?? name) && plural === (selector.plural ?? plural)
  const silentUntilMs = (openStream: OpenStream): number =>
    Math.max(0, ...cuts.filter((cut) => matches(openStream, cut)).map(({ untilMs }) => untilMs))

  async function* streamEvents<T extends KubeObject>(
    incarnation: Incarnation & Sender,
    open: (client: Client) => AsyncIterable<WatchEvent<T>>,
    {
      plural,
      isResumed,
      sendsInitialEvents,
    }: { readonly plural: string; readonly isResumed: boolean; readonly sendsInitialEvents: boolean },
  ): AsyncIterable<WatchEvent<T>> {
    await incarnation.pass(delay())
    const client = server()
    const { name = '' } = incarnation
    if (cutOffProcesses.has(name)) return noReply()
    if (!client || happens(faults.refuse, 'refused 429 or 503')) throw unavailable('connection refused')
    const expiredResumes = expiredByStream.get(`${name} ${plural}`) ?? 0
    if (isResumed && expiredResumes > 0) {
      expiredByStream.set(`${name} ${plural}`, expiredResumes - 1)
      simulation.tally('410 for a watch')
      throw expired('too old resource version: history was cut')
    }
    let isInitialState = sendsInitialEvents
    const openStream: OpenStream = { name, plural }
    streams.add(openStream)
    const events = open(client)[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await incarnation.pass(
          waitForEvent(events.next(), client, openStream).finally(() => incarnation.alive || events.return?.()),
        )
        if (next.done) return
        if (happens(faults.breakWatch + lossRateOf(incarnation), 'watch broken')) throw unavailable('the stream broke')
        if (happens(faults.silenceWatch, 'watch silent')) {
          await incarnation.pass(wait(SILENCE_MS_MAX))
          throw unavailable('the stream is silent')
        }
        // The initial state arrives at once; every later event is delayed separately.
        if (next.value.type === 'bookmark') isInitialState = false
        if (!isInitialState) {
          const silentMs = silentUntilMs(openStream) - simulation.nowMs
          if (silentMs > 0) {
            await incarnation.pass(wait(silentMs + 1)) // the end of the cut counts the open watches first
            throw unavailable('the stream broke')
          }
          if (!isPeriodicBookmark(next.value)) await incarnation.pass(delay())
        }
        yield next.value
      }
    } finally {
      streams.delete(openStream)
      void events.return?.()
    }
  }

  const waitForOutcome = <T>(outcome: Promise<T>): Promise<T | undefined> =>
    new Promise((resolve) => {
      const cancel = simulation.schedule(REPLY_TIMEOUT_MS, () => resolve(undefined))
      void outcome.then((result) => {
        cancel()
        resolve(result)
      })
    })

  /** Waits for the next event. Rejects if the connection breaks or no event arrives for SILENCE_MS_MAX. */
  function waitForEvent<T>(next: Promise<T>, client: Client, stream: OpenStream): Promise<T> {
    return new Promise((resolve, reject) => {
      const onBreak = () => {
        simulation.schedule(NOTICE_MS_MAX * random(), () => end(() => reject(unavailable('the connection was reset'))))
      }
      const end = (settle: () => void) => {
        cancel()
        delete stream.onBreak
        settle()
      }
      const cancel = simulation.schedule(SILENCE_MS_MAX, () => end(() => reject(unavailable('the stream is silent'))))
      stream.onBreak = onBreak
      if (server() !== client) onBreak()
      next.then(
        (value) => end(() => resolve(value)),
        (error) => end(() => reject(error)),
      )
    })
  }

  return {
    faults,
    lossesByProcess,
    cutOffProcesses,
    cutHistory(ms, selector = {}) {
      const cut = { ...selector, untilMs: simulation.nowMs + ms }
      cuts.push(cut)
      simulation.schedule(ms, () => {
        cuts = cuts.filter((other) => other !== cut)
        for (const stream of streams) {
          if (!matches(stream, cut)) continue
          const key = `${stream.name} ${stream.plural}`
          expiredByStream.set(key, (expiredByStream.get(key) ?? 0) + 1)
          stream.onBreak?.()
        }
      })
    },
    breakWatches() {
      for (const { onBreak } of streams) onBreak?.()
    },
    clientFor: (incarnation, adaptServer = (client) => client) => ({
      get: (...args) => incarnation.pass(exchange(incarnation, (client) => adaptServer(client).get(...args))),
      list: (...args) => incarnation.pass(exchange(incarnation, (client) => adaptServer(client).list(...args))),
      create: (...args) =>
        incarnation.pass(exchange(incarnation, (client) => adaptServer(client).create(...args), true)),
      update: (...args) =>
        incarnation.pass(exchange(incarnation, (client) => adaptServer(client).update(...args), true)),
      patch: (...args) => incarnation.pass(exchange(incarnation, (client) => adaptServer(client).patch(...args), true)),
      delete: (...args) =>
        incarnation.pass(exchange(incarnation, (client) => adaptServer(client).delete(...args), true)),
      commit: (...args) =>
        incarnation.pass(exchange(incarnation, (client) => adaptServer(client).commit(...args), true)),
      serves: (...args) => incarnation.pass(exchange(incarnation, (client) => adaptServer(client).serves(...args))),
      watch: (kind, request) =>
        streamEvents(incarnation, (client) => adaptServer(client).watch(kind, request), {
          plural: kind.plural,
          isResumed: request.resourceVersion !== undefined,
          sendsInitialEvents: request.sendInitialEvents === true,
        }),
      commitsAtomically: async () => (await server()?.commitsAtomically()) ?? true,
    }),
  }
}
