// Connects to a CSI driver on a Unix socket. gRPC connects on the first call and reconnects when the driver restarts. Calls
// are not retried. Errors distinguish a failure of the driver, a driver that is not running, a broken connection, and an
// invalid response.
import { setMaxListeners } from 'node:events'
import { type DescMethod, fromBinary, type Message, toBinary } from '@bufbuild/protobuf'
import { Client, type ClientOptions, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { LruCache } from '../base/lru-cache.ts'
import { type CsiDriver, createCsiDriver } from './driver.ts'
import { ConnectionError, CsiError, codeNameOf } from './errors.ts'
import type { CallObserver } from './metrics.ts'
import { createSecretMask, type SecretMask } from './secret-mask.ts'
import { parseSocketPath } from './socket-path.ts'
import { type CallOptions, pathOf } from './transport.ts'

export interface ConnectOptions {
  /** The socket as `unix:///run/x/csi.sock` or as a path. */
  readonly address: string
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: CallObserver
  /** Timeout of calls that set none themselves. Default: 10 s. */
  readonly timeoutMs?: number
  /** Masks secrets in the driver's messages. Default: a mask that all connections of this process to the socket share. */
  readonly secretMask?: SecretMask
}

export interface CsiConnection extends CsiDriver {
  /** Rejects calls in flight and all later calls with CANCELLED. */
  close(): void
}

const MESSAGE_BYTES_MAX = 64 * 1024 * 1024 // a driver may return all its volumes in one message
const ERROR_CHARACTERS_MAX = 4_096 // longer error messages of a driver are truncated
const CHANNEL_OPTIONS: ClientOptions = {
  'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
  'grpc.max_send_message_length': MESSAGE_BYTES_MAX,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.min_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  'grpc.default_authority': 'localhost',
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_retries': 0, // callers decide which calls to retry
  'grpc.enable_channelz': 0,
}
const MASKED_SOCKETS_MAX = 64 // beyond this, the secrets sent to the least recently connected socket are dropped
const TIMEOUT_HEADER_MS_MAX = 99_999_999 // the header allows eight digits

export function connectDriver(options: ConnectOptions): CsiConnection {
  const { address, clock, log, metrics, timeoutMs = 10_000 } = options
  const path = parseSocketPath(address)
  const client = new Client(`unix:${path}`, credentials.createInsecure(), CHANNEL_OPTIONS)
  const secretMask = options.secretMask ?? getSecretMask(path)
  const closeAbort = new AbortController()
  setMaxListeners(0, closeAbort.signal) // every call in flight has a listener
  const availability = createAvailabilityLog({ log, path, isClosed: () => closeAbort.signal.aborted })

  function send(method: DescMethod, request: Message, callOptions: CallOptions): Promise<Message> {
    return new Promise((resolve, reject) => {
      const { signal, timeoutMs: callTimeoutMs = timeoutMs } = callOptions
      if (closeAbort.signal.aborted) return reject(connectionClosed(method, path))
      if (signal?.aborted) return reject(cancelled(method))

      // The injected clock enforces the timeout. The header only informs the driver.
      const metadata = new Metadata()
      metadata.set('grpc-timeout', `${Math.min(Math.max(1, Math.ceil(callTimeoutMs)), TIMEOUT_HEADER_MS_MAX)}m`)
      const call = client.makeUnaryRequest<Message, Message>(
        pathOf(method),
        (message) => Buffer.from(toBinary(method.input, message)),
        (bytes) => fromBinary(method.output, bytes),
        request,
        metadata,
        {},
        (error, response) => {
          if (!isAbandoned) availability.update(error)
          settle(error ? toCsiError(error, method, path, secretMask) : response!)
        },
      )
      const settle = (outcome: Message | CsiError) => {
        cancelTimeout()
        signal?.removeEventListener('abort', cancel)
        closeAbort.signal.removeEventListener('abort', close)
        if (outcome instanceof CsiError) reject(outcome)
        else resolve(outcome)
      }
      let isAbandoned = false
      const abandon = (error: CsiError) => {
        isAbandoned = true
        settle(error)
        call.cancel()
      }
      const cancel = () => abandon(cancelled(method))
      const close = () => abandon(connectionClosed(method, path))
      const cancelTimeout = clock.after(callTimeoutMs, () => abandon(timedOut(method, callTimeoutMs)))
      signal?.addEventListener('abort', cancel, { once: true })
      closeAbort.signal.addEventListener('abort', close, { once: true })
    })
  }

  return {
    ...createCsiDriver(send, { secretMask, instruments: { clock, log, metrics } }),
    close() {
      closeAbort.abort()
      client.close()
    },
  }
}

/**
 * The masks by socket. All connections of this process to a driver share one mask, because the driver may quote a secret
 * that was sent over another or an earlier connection.
 */
const secretMasks = new LruCache<string, SecretMask>(MASKED_SOCKETS_MAX)

function getSecretMask(path: string): SecretMask {
  const mask = secretMasks.get(path) ?? createSecretMask()
  secretMasks.set(path, mask)
  return mask
}

/** Logs once when the driver becomes unavailable and once when it is available again. ready.ts waits for its first start. */
function createAvailabilityLog({
  log,
  path,
  isClosed,
}: Pick<ConnectOptions, 'log'> & { path: string; isClosed(): boolean }) {
  let availability: 'unknown' | 'available' | 'unavailable' = 'unknown'
  return {
    update(error: ServiceError | null): void {
      const isLost =
        error?.code === status.UNAVAILABLE && (NOT_CONNECTED.test(error.details) || CONNECTION_LOST.test(error.details))
      if (!isLost) {
        if (availability === 'unavailable') log.info({ socket: path }, 'the CSI driver is available again')
        availability = 'available'
      } else if (availability === 'available' && !isClosed()) {
        log.warn(
          { socket: path, reason: extractErrorCode(error.details) },
          'the CSI driver is unavailable; calls fail until it restarts',
        )
        availability = 'unavailable'
      }
    },
  }
}

function toCsiError(error: ServiceError, method: DescMethod, path: string, { mask }: SecretMask): CsiError {
  const isUnavailable = error.code === status.UNAVAILABLE
  if (isUnavailable && NOT_CONNECTED.test(error.details)) return notConnected(path, error.details)
  const isLost = isUnavailable && CONNECTION_LOST.test(error.details)
  if (isLost) return connectionLost(method, path, error.details)
  if (NO_RESPONSE.test(error.details)) return noResponse(method, path, error.details)
  const codeName = codeNameOf(error.code)
  // Mask before truncating, because a truncated secret is not recognized.
  const text = mask(error.details).slice(0, ERROR_CHARACTERS_MAX)
  return new CsiError(codeName === 'OK' ? 'UNKNOWN' : codeName, text || withoutMessage(method.name))
}

/** Error messages of grpc-js if nothing was sent, and if the connection broke during a call. */
const NOT_CONNECTED = /^(No connection established|Name resolution failed|Channel has been shut down)/
const CONNECTION_LOST = /^(Connection dropped|Stream refused by server|read ECONNRESET|write EPIPE)/
/** Messages of errors without a valid response, which grpc-js reports with codes that drivers also return, such as INTERNAL. */
const NO_RESPONSE = /^(Received RST_STREAM|Response message parsing error|Received message larger than max)/

/** The text of a failure for which the driver sent none, although the CSI specification requires one. */
export const withoutMessage = (method: string): string => `${method} failed without an error message`

const notConnected = (path: string, details: string) =>
  new ConnectionError(
    `Cannot connect to the CSI driver at ${path} (${extractErrorCode(details)}). Start the driver, or correct the address of its socket.`,
  )
const connectionLost = (method: DescMethod, path: string, details: string) =>
  new ConnectionError(
    `The connection to the CSI driver at ${path} broke during ${method.name} (${details}); the driver may have completed the call.`,
  )
const noResponse = (method: DescMethod, path: string, details: string) =>
  new ConnectionError(
    `The CSI driver at ${path} sent no valid response to ${method.name} (${details}); it may have completed the call.`,
  )
const timedOut = (method: DescMethod, timeoutMs: number) =>
  new CsiError(
    'DEADLINE_EXCEEDED',
    `${method.name} did not complete within ${timeoutMs / 1_000} s; the CSI driver may still be working on it.`,
  )
const cancelled = (method: DescMethod) =>
  new CsiError('CANCELLED', `${method.name} was cancelled; the CSI driver may still be working on it.`)
const connectionClosed = (method: DescMethod, path: string) =>
  new CsiError('CANCELLED', `${method.name} was cancelled because this process closed the connection to ${path}.`)

const extractErrorCode = (details: string) => /E[A-Z]{3,}/.exec(details)?.[0] ?? details
