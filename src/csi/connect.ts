// A driver behind a unix socket. The connection is made when it is first needed and made again whenever the driver
// comes back; a call is sent once, and each failure says whether the driver answered it, was not there or went away.
import { setMaxListeners } from 'node:events'
import { type DescMethod, fromBinary, type Message, toBinary } from '@bufbuild/protobuf'
import { Client, type ClientOptions, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { type CallOptions, type CsiDriver, createCsiDriver, pathOf } from './driver.ts'
import { CsiError, codeNameOf } from './errors.ts'
import { instrument } from './instrument.ts'
import type { CallObserver } from './metrics.ts'
import { redactText } from './redact.ts'
import { socketPathOf } from './socket-path.ts'

export interface ConnectOptions {
  /** `unix:///run/x/csi.sock`, or just the path. */
  readonly address: string
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: CallObserver
  /** How long a call may take, unless it says otherwise. Default 10 s. */
  readonly timeoutMs?: number
}

export interface CsiConnection extends CsiDriver {
  /** Ends the calls under way, with CANCELLED, and fails all later ones. */
  close(): void
}

const MESSAGE_BYTES_MAX = 64 * 1024 * 1024 // a driver's whole list of volumes may come in one message
const ERROR_CHARACTERS_MAX = 4_096 // what a driver says beyond this is cut off
const CHANNEL_OPTIONS: ClientOptions = {
  'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
  'grpc.max_send_message_length': MESSAGE_BYTES_MAX,
  'grpc.initial_reconnect_backoff_ms': 100, // a driver that restarts is back within a second
  'grpc.min_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  'grpc.default_authority': 'localhost',
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_retries': 0, // only the caller knows what may be repeated, and when
  'grpc.enable_channelz': 0,
}
const TIMEOUT_HEADER_MS_MAX = 99_999_999 // the header holds eight digits

export function connectDriver({ address, clock, log, metrics, timeoutMs = 10_000 }: ConnectOptions): CsiConnection {
  const path = socketPathOf(address)
  const client = new Client(`unix:${path}`, credentials.createInsecure(), CHANNEL_OPTIONS)
  const closed = new AbortController()
  setMaxListeners(0, closed.signal) // every call under way listens to it, and takes its listener away
  const presence = createAvailabilityLog({ log, path, isClosed: () => closed.signal.aborted })

  function send(method: DescMethod, request: Message, options: CallOptions): Promise<Message> {
    return new Promise((resolve, reject) => {
      const { signal, timeoutMs: callTimeoutMs = timeoutMs } = options
      if (closed.signal.aborted) return reject(connectionClosed(method, path))
      if (signal?.aborted) return reject(cancelled(method))

      // The clock that was handed in keeps the time; the driver is told how much of it there is.
      const metadata = new Metadata()
      metadata.set('grpc-timeout', `${Math.min(Math.max(1, Math.ceil(callTimeoutMs)), TIMEOUT_HEADER_MS_MAX)}m`)
      const call = client.makeUnaryRequest<Message, Message>(
        pathOf(method),
        (message) => Buffer.from(toBinary(method.input, message)),
        (bytes) => fromBinary(method.output, bytes),
        request,
        metadata,
        {},
        (error, reply) => {
          if (!isDropped) presence.heard(error)
          end(error ? failureOf(error, method, request, path) : reply!)
        },
      )
      const end = (outcome: Message | CsiError) => {
        cancelTimeout()
        signal?.removeEventListener('abort', giveUp)
        closed.signal.removeEventListener('abort', close)
        if (outcome instanceof CsiError) reject(outcome)
        else resolve(outcome)
      }
      let isDropped = false
      const drop = (because: CsiError) => {
        isDropped = true
        end(because)
        call.cancel()
      }
      const giveUp = () => drop(cancelled(method))
      const close = () => drop(connectionClosed(method, path))
      const cancelTimeout = clock.after(callTimeoutMs, () => drop(timedOut(method, callTimeoutMs)))
      signal?.addEventListener('abort', giveUp, { once: true })
      closed.signal.addEventListener('abort', close, { once: true })
    })
  }

  return {
    ...createCsiDriver(instrument(send, { clock, log, ...(metrics ? { metrics } : {}) })),
    close() {
      closed.abort()
      client.close()
    },
  }
}

/** One line in the log when the driver goes, and one when it is back. That it is not there yet is for whenReady to say. */
function createAvailabilityLog({
  log,
  path,
  isClosed,
}: Pick<ConnectOptions, 'log'> & { path: string; isClosed(): boolean }) {
  let driver: 'awaited' | 'here' | 'gone' = 'awaited'
  return {
    heard(error: ServiceError | null): void {
      const isLost =
        error?.code === status.UNAVAILABLE && (NOT_THERE.test(error.details) || WENT_AWAY.test(error.details))
      if (!isLost) {
        if (driver === 'gone') log.info({ socket: path }, 'the CSI driver answers again')
        driver = 'here'
      } else if (driver === 'here' && !isClosed()) {
        log.warn(
          { socket: path, because: systemErrorIn(error.details) },
          'the CSI driver is gone; calls fail until it is back',
        )
        driver = 'gone'
      }
    },
  }
}

function failureOf(error: ServiceError, method: DescMethod, request: Message, path: string): CsiError {
  if (error.code === status.UNAVAILABLE && NOT_THERE.test(error.details)) return notConnected(path, error.details)
  if (error.code === status.UNAVAILABLE && WENT_AWAY.test(error.details))
    return connectionLost(method, path, error.details)
  if (NO_ANSWER.test(error.details)) return connectionLost(method, path, error.details)
  const codeName = codeNameOf(error.code)
  const text = redactText(error.details, method.input, request).slice(0, ERROR_CHARACTERS_MAX)
  return new CsiError(codeName === 'OK' ? 'UNKNOWN' : codeName, text || `${method.name} failed without a reason`)
}

/** What gRPC itself says when nothing was sent, and when the connection ended under a call. */
const NOT_THERE = /^(No connection established|Name resolution failed|Channel has been shut down)/
const WENT_AWAY = /^(Connection dropped|Stream refused by server|read ECONNRESET|write EPIPE)/
/** gRPC makes INTERNAL and the like of these, which would mean that the driver answered. It did not, or not readably. */
const NO_ANSWER = /^(Received RST_STREAM|Response message parsing error|Received message larger than max)/

const notConnected = (path: string, details: string) =>
  new CsiError(
    'UNAVAILABLE',
    `No CSI driver answers at ${path} (${systemErrorIn(details)}). Start the driver, or correct the address of its socket.`,
  )
const connectionLost = (method: DescMethod, path: string, details: string) =>
  new CsiError(
    'UNAVAILABLE',
    `The CSI driver at ${path} went away during ${method.name} without an answer (${details}); it may have done what was asked.`,
  )
const timedOut = (method: DescMethod, timeoutMs: number) =>
  new CsiError(
    'DEADLINE_EXCEEDED',
    `${method.name} took longer than ${timeoutMs / 1_000} s; the CSI driver may still be at work.`,
  )
const cancelled = (method: DescMethod) =>
  new CsiError('CANCELLED', `${method.name} was given up; the CSI driver may still be at work.`)
const connectionClosed = (method: DescMethod, path: string) =>
  new CsiError('CANCELLED', `${method.name} ended with the connection to ${path}; it was closed on this side.`)

const systemErrorIn = (details: string) => /E[A-Z]{3,}/.exec(details)?.[0] ?? details
