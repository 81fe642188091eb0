// Sends long bodies slice by slice: the next slice is encoded when the connection can take more. Disconnects clients that do
// not read, sooner if other requests wait for the seats that the response occupies.
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { LongBody, Seats } from './messages.ts'

/** A client that receives nothing for this long is disconnected. */
const STALL_MS_MAX = 60_000
/** The limit that applies instead while other requests wait for the response's seats. */
const CONTENDED_STALL_MS_MAX = 5_000
const CHECK_INTERVAL_MS = 1_000

export interface SliceSenderOptions {
  readonly clock: Clock
  readonly log: Logger
}

/** The members of ServerResponse that the sender uses. */
export interface SlicedResponse {
  write(chunk: Uint8Array): boolean
  end(): unknown
  destroy(): unknown
  readonly destroyed: boolean
  on(event: 'drain' | 'close', run: () => void): unknown
}

interface ActiveResponse {
  readonly response: SlicedResponse
  readonly seats: Seats | undefined
  sentAtMs: number
}

export function createSliceSender({ clock, log }: SliceSenderOptions) {
  const activeResponses = new Set<ActiveResponse>()
  let isTimerSet = false

  function disconnectStalledClients(): void {
    isTimerSet = false
    const nowMs = clock.monotonicMs()
    for (const activeResponse of activeResponses) {
      const stallMs = nowMs - activeResponse.sentAtMs
      if (stallMs < (activeResponse.seats?.hasWaiters ? CONTENDED_STALL_MS_MAX : STALL_MS_MAX)) continue
      log.debug({ stallMs }, 'closed the connection of a client that does not read its response')
      activeResponse.response.destroy()
    }
    startTimer()
  }

  function startTimer(): void {
    if (isTimerSet || activeResponses.size === 0) return
    isTimerSet = true
    clock.after(CHECK_INTERVAL_MS, disconnectStalledClients)
  }

  return {
    /** Sends the body after the headers. */
    send(response: SlicedResponse, body: LongBody, seats?: Seats): void {
      const activeResponse: ActiveResponse = { response, seats, sentAtMs: clock.monotonicMs() }
      const continueLater = () => void clock.nextTurn().then(sendNext)
      const sendNext = (): void => {
        if (response.destroyed) return
        activeResponse.sentAtMs = clock.monotonicMs()
        try {
          const slice = body.next()
          if (!slice) response.end()
          else if (response.write(slice)) continueLater()
        } catch (error) {
          log.error({ err: error }, 'cannot encode the response')
          response.destroy()
        }
      }
      activeResponses.add(activeResponse)
      startTimer()
      response.on('drain', continueLater)
      response.on('close', () => activeResponses.delete(activeResponse))
      continueLater()
    },
  }
}
