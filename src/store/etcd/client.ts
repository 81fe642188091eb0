// A gRPC client of etcd with timeouts and retries. Reads are retried at the next member until the timeout. A write is
// retried only if it certainly did not reach etcd's log. If the response of a write is lost, the write may have been
// committed, and the error reports this (`mayBeWritten`).
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'
import {
  Client,
  type ClientDuplexStream,
  type ClientOptions,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js'
import type { Clock } from '../../base/clock.ts'
import { StoreUnavailableError } from '../store.ts'
import {
  CompactionRequestSchema,
  CompactionResponseSchema,
  RangeRequestSchema,
  type RangeResponse,
  RangeResponseSchema,
  StatusRequestSchema,
  type StatusResponse,
  StatusResponseSchema,
  TxnRequestSchema,
  type TxnResponse,
  TxnResponseSchema,
  type WatchCreateRequestSchema,
  type WatchRequest,
  WatchRequestSchema,
  type WatchResponse,
  WatchResponseSchema,
} from './gen/etcd_pb.js'

const RETRY_MS_MIN = 20 // doubled with every attempt
const RETRY_MS_MAX = 500

const CHANNEL_OPTIONS: ClientOptions = {
  'grpc.max_receive_message_length': -1, // etcd limits the size of writes; everything it stored must be readable
  'grpc.max_send_message_length': -1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  'grpc.keepalive_time_ms': 10_000, // detects a member that disappeared without closing the connection
  'grpc.keepalive_timeout_ms': 5_000,
  'grpc.enable_retries': 0, // #call decides which calls to retry
  'grpc.enable_channelz': 0,
}

export interface EtcdTls {
  /** The CA certificates in PEM. Default: the Node.js root certificates. */
  readonly ca?: string
  /** The client certificate in PEM, if etcd requires one. */
  readonly cert?: string
  readonly key?: string
}

export interface EtcdClientOptions {
  /** `HOST:PORT` of each member. */
  readonly endpoints: readonly string[]
  readonly tls?: EtcdTls
  readonly clock: Clock
  /** Maximum duration of a call, including retries. */
  readonly requestTimeoutMs: number
}

export interface WatchHandlers {
  readonly onResponse: (response: WatchResponse) => void
  /** Called once, unless the watch was cancelled. */
  readonly onEnd: (reason: string) => void
}

/** Thrown if etcd rejected the call and wrote nothing. */
export class EtcdRejectedError extends Error {
  override readonly name = 'EtcdRejectedError'
  get isCompacted(): boolean {
    return this.message.includes('required revision has been compacted')
  }
}

export class EtcdClient {
  readonly #options: EtcdClientOptions
  readonly #members: readonly Client[]
  readonly #metadata = new Metadata()
  readonly #closeController = new AbortController()
  #currentMember = 0

  constructor(options: EtcdClientOptions) {
    this.#options = options
    const { tls } = options
    const toBuffer = (pem: string | undefined) => (pem === undefined ? null : Buffer.from(pem))
    const channelCredentials = tls
      ? credentials.createSsl(toBuffer(tls.ca), toBuffer(tls.key), toBuffer(tls.cert))
      : credentials.createInsecure()
    this.#members = options.endpoints.map((endpoint) => new Client(endpoint, channelCredentials, CHANNEL_OPTIONS))
    this.#metadata.set('hasleader', 'true') // a member without a leader fails the call instead of blocking
  }

  range(request: MessageInitShape<typeof RangeRequestSchema>): Promise<RangeResponse> {
    return this.#call('/etcdserverpb.KV/Range', RangeRequestSchema, RangeResponseSchema, request, { isRead: true })
  }

  txn(request: MessageInitShape<typeof TxnRequestSchema>): Promise<TxnResponse> {
    return this.#call('/etcdserverpb.KV/Txn', TxnRequestSchema, TxnResponseSchema, request, { isRead: false })
  }

  async compact(revision: number): Promise<void> {
    const request = { revision: BigInt(revision) }
    const path = '/etcdserverpb.KV/Compact'
    await this.#call(path, CompactionRequestSchema, CompactionResponseSchema, request, { isRead: false })
  }

  status(): Promise<StatusResponse> {
    const path = '/etcdserverpb.Maintenance/Status'
    return this.#call(path, StatusRequestSchema, StatusResponseSchema, {}, { isRead: true })
  }

  /** Opens a watch at the current member and returns a function that cancels it. */
  watch(request: MessageInitShape<typeof WatchCreateRequestSchema>, handlers: WatchHandlers): () => void {
    const member = this.#currentMember
    const stream: ClientDuplexStream<WatchRequest, WatchResponse> = this.#member(member).makeBidiStreamRequest(
      '/etcdserverpb.Watch/Watch',
      (message) => Buffer.from(toBinary(WatchRequestSchema, message)),
      (bytes) => fromBinary(WatchResponseSchema, bytes),
      this.#metadata,
    )
    let isEnded = false
    const end = (reason: string) => {
      if (isEnded) return
      isEnded = true
      stream.cancel()
      this.#switchFrom(member)
      handlers.onEnd(reason)
    }
    stream.on('data', (response: WatchResponse) => {
      if (!isEnded) handlers.onResponse(response)
    })
    stream.on('error', (error) => end(error.message))
    stream.on('end', () => end('the watch stream ended'))
    stream.write(create(WatchRequestSchema, { requestUnion: { case: 'createRequest', value: request } }))
    return () => {
      isEnded = true
      stream.cancel()
    }
  }

  close(): void {
    this.#closeController.abort()
    for (const member of this.#members) member.close()
  }

  async #call<Request extends DescMessage, Response extends DescMessage>(
    path: string,
    requestSchema: Request,
    responseSchema: Response,
    init: MessageInitShape<Request>,
    { isRead }: { isRead: boolean },
  ): Promise<MessageShape<Response>> {
    const { clock, requestTimeoutMs } = this.#options
    const request = toBinary(requestSchema, create(requestSchema, init))
    const startedMs = clock.monotonicMs()
    for (let pauseMs = RETRY_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, RETRY_MS_MAX)) {
      const member = this.#currentMember
      const remainingMs = requestTimeoutMs - (clock.monotonicMs() - startedMs)
      try {
        return await this.#send(member, path, request, responseSchema, remainingMs)
      } catch (error) {
        const { code, details } = error as ServiceError
        if (!isTransient(code)) throw new EtcdRejectedError(details ?? String(error))
        this.#switchFrom(member)
        const mayBeWritten = !isRead && !failedBeforeLog(details)
        const isTimeoutNear = clock.monotonicMs() - startedMs + pauseMs >= requestTimeoutMs
        if (mayBeWritten || isTimeoutNear || this.#closeController.signal.aborted) {
          throw new StoreUnavailableError(`etcd is not responding: ${details}`, { mayBeWritten })
        }
      }
      await clock.sleep(pauseMs, this.#closeController.signal).catch(() => {}) // closed: the next attempt fails immediately
    }
  }

  #send<Response extends DescMessage>(
    member: number,
    path: string,
    request: Uint8Array,
    responseSchema: Response,
    timeoutMs: number,
  ): Promise<MessageShape<Response>> {
    return new Promise((resolve, reject) => {
      const call = this.#member(member).makeUnaryRequest<Uint8Array, MessageShape<Response>>(
        path,
        (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
        (bytes) => fromBinary(responseSchema, bytes),
        request,
        this.#metadata,
        {},
        (error, response) => {
          cancelTimeout()
          if (response) resolve(response)
          else reject(error)
        },
      )
      const cancelTimeout = this.#options.clock.after(timeoutMs, () => call.cancel())
    })
  }

  #member(index: number): Client {
    return this.#members[index] as Client
  }

  /** Switches to the next member, unless another call has already switched. */
  #switchFrom(member: number): void {
    if (member === this.#currentMember) this.#currentMember = (member + 1) % this.#members.length
  }
}

const TRANSIENT_CODES: readonly status[] = [
  status.UNAVAILABLE,
  status.CANCELLED, // by this client's timeout
  status.DEADLINE_EXCEEDED,
  status.INTERNAL,
  status.UNKNOWN,
  status.ABORTED,
]
const isTransient = (code: status | undefined) => code !== undefined && TRANSIENT_CODES.includes(code)

/** Whether the call failed before it reached etcd's log, because of a missing connection or leader. */
const failedBeforeLog = (details: string) => /No connection established|Name resolution failed|no leader/.test(details)
