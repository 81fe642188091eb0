// WATCH: a stream of the changes after a resourceVersion. The store replays and orders the changes; a stream applies the
// selectors and encodes the events. The encoding of an event, except as a table, is shared by all streams of the same form.
import { zeroOf } from '../../api/decode.ts'
import type { KubeObject } from '../../api/kind.ts'
import type { ObjectType } from '../../api/schema.ts'
import { ApiError, expired } from '../../api/status-error.ts'
import type { Clock, Random } from '../../base/clock.ts'
import { CompactedError, type StoreEvent, type Watch } from '../../store/index.ts'
import type { ApiResponse, Seats, StreamSink } from '../http/messages.ts'
import type { AcceptedForm } from '../http/negotiate.ts'
import type { ListOptions } from '../http/options.ts'
import { encodeFrame, encodeTypedValue, partialObjectMetadata, type TypedValue } from '../http/protobuf-response.ts'
import { type IncludeObject, partialOf, tableOf } from '../http/table.ts'
import { collectionPrefix } from '../keys.ts'
import { viewOf } from '../objects/object-deps.ts'
import { selectorOf } from '../objects/selector.ts'
import { objectBytes, type Shared } from '../objects/stored-object.ts'
import { type ReadDeps, storeOf, waitForRevision } from '../objects/wait-for-revision.ts'
import { status as statusType } from '../openapi/envelope-types.ts'
import type { Resource } from '../resources.ts'
import { listObjects } from './list.ts'

/** Maximum number of pending bytes. A client with more is disconnected and can resume from its last resourceVersion. */
const WATCH_BACKLOG_BYTES_MAX = 16 * 1024 * 1024
const BOOKMARK_INTERVAL_MS = 60_000
/** With a bookmark this long before the end, a client that reconnects needs only a short replay. */
const LAST_BOOKMARK_MS = 2_000
/** Maximum size of a slice of initial events, which are written slice by slice. */
const INITIAL_SLICE_EVENTS = 250
const INITIAL_SLICE_BYTES = 128 * 1024
/** With more pending bytes than this, the next slice of initial events waits until more can be written. */
const INITIAL_PENDING_BYTES_MAX = 256 * 1024
/** A client that does not read the pending initial events within this time is disconnected. */
const INITIAL_STALL_MS_MAX = 60_000
/** The limit that applies instead while other requests wait for the capacity that the watch occupies. */
const CONTENDED_STALL_MS_MAX = 5_000

export interface WatchDeps extends ReadDeps {
  readonly clock: Clock
  readonly random: Random
}

export interface WatchRequest {
  readonly resource: Resource
  readonly namespace: string
  readonly options: ListOptions
  readonly acceptedForm: AcceptedForm
  readonly include: IncludeObject
}

type EventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'

/** Checks the request, so that errors are ordinary responses. The returned function writes the stream until it ends. */
export async function openWatch(deps: WatchDeps, request: WatchRequest): Promise<NonNullable<ApiResponse['stream']>> {
  const { resource, options } = request
  const matches = selectorOf(resource, options)
  await waitForRevision({ store: storeOf(deps, resource), clock: deps.clock }, options.resourceVersion ?? 0)
  return (sink, seats) => {
    const stream = new WatchStream(deps, request, matches, sink, seats)
    void stream.start().finally(() => seats?.release())
  }
}

class WatchStream {
  readonly #deps: WatchDeps
  readonly #request: WatchRequest
  readonly #matches: ((object: Shared) => boolean) | undefined
  readonly #sink: StreamSink
  /** The seats of the request, which it occupies until the initial events are sent. */
  readonly #seats: Seats | undefined
  /** Cancels the only timer: a server may have thousands of idle watches. */
  #cancelTimer = NOOP
  #watch: Watch | undefined
  #isEnded = false
  #hasSentColumns = false
  #onStop = NOOP

  constructor(
    deps: WatchDeps,
    request: WatchRequest,
    matches: ((object: Shared) => boolean) | undefined,
    sink: StreamSink,
    seats: Seats | undefined,
  ) {
    this.#deps = deps
    this.#request = request
    this.#matches = matches
    this.#sink = sink
    this.#seats = seats
    sink.onClose(() => this.#stop())
  }

  async start(): Promise<void> {
    const { options } = this.#request
    try {
      const version = options.resourceVersion ?? 0
      const sendsInitialEvents = options.sendInitialEvents ?? version === 0
      const startRevision = sendsInitialEvents ? await this.#sendInitialEvents() : version
      if (this.#isEnded) return
      this.#follow(startRevision)
      this.#scheduleEnd()
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Sends the current state as ADDED events, and a bookmark at the end if requested. Returns the revision of the state. */
  async #sendInitialEvents(): Promise<number> {
    const { resource, namespace, options } = this.#request
    const { entries, revision } = await listObjects(this.#deps, resource, namespace, {
      ...options,
      resourceVersion: undefined,
      resourceVersionMatch: undefined,
      limit: 0,
      continueToken: '',
    })
    for (let index = 0; index < entries.length && !this.#isEnded; ) {
      const chunks: Buffer[] = []
      for (
        let bytes = 0;
        bytes < INITIAL_SLICE_BYTES && chunks.length < INITIAL_SLICE_EVENTS && index < entries.length;
        index++
      ) {
        const entry = entries[index]!
        const decode = () => this.#deps.objects.decode(entry)
        const chunk = this.#eventBytes('ADDED', entry.value, entry.modRevision, decode)
        chunks.push(chunk)
        bytes += chunk.length
      }
      this.#write(Buffer.concat(chunks))
      await this.#deps.clock.nextTurn()
      if (this.#sink.pendingBytes > INITIAL_PENDING_BYTES_MAX) await this.#waitUntilDrained()
    }
    if (options.sendInitialEvents && options.allowBookmarks) this.#writeBookmark(revision, true)
    return revision
  }

  /** Resolves when more can be written, or when the stream has ended. */
  #waitUntilDrained(): Promise<void> {
    if (this.#isEnded) return Promise.resolve()
    return new Promise((resolve) => {
      let stallMs = 0
      const check = () => {
        stallMs += CONTENDED_STALL_MS_MAX
        if (this.#seats?.hasWaiters || stallMs >= INITIAL_STALL_MS_MAX) this.#cut()
        else this.#after(CONTENDED_STALL_MS_MAX, check)
      }
      this.#after(CONTENDED_STALL_MS_MAX, check)
      const resolveOnce = () => {
        this.#cancelTimer()
        resolve()
      }
      this.#onStop = resolveOnce
      this.#sink.onDrain(resolveOnce)
    })
  }

  #follow(afterRevision: number): void {
    const { resource, namespace } = this.#request
    this.#watch = storeOf(this.#deps, resource).watch({
      prefix: collectionPrefix(resource.storedKind, namespace),
      afterRevision,
      onEvents: (events) => this.#onEvents(events),
      onEnd: (reason) => this.#fail(reason),
    })
    if (this.#isEnded) this.#watch.close()
  }

  #onEvents(events: readonly StoreEvent[]): void {
    if (this.#isEnded) return
    const isShareable = !this.#matches && this.#request.acceptedForm.form === 'object'
    const chunk = isShareable
      ? encodeSharedBatch(this.#request, events, (event) => this.#encodePlainEvent(event))
      : this.#encodeBatch(events)
    if (chunk.length > 0) this.#write(chunk)
  }

  #encodeBatch(events: readonly StoreEvent[]): Buffer {
    const chunks: Buffer[] = []
    for (const event of events) {
      const chunk = this.#matches ? this.#encodeSelectedEvent(event, this.#matches) : this.#encodePlainEvent(event)
      if (chunk) chunks.push(chunk)
    }
    return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
  }

  #encodePlainEvent(event: StoreEvent): Buffer {
    if (event.type === 'delete') return this.#encodePrevious('DELETED', event)
    return this.#encodeCurrent(event.previous ? 'MODIFIED' : 'ADDED', event)
  }

  /** Returns ADDED for an object that starts to match the selector, and DELETED for one that stops matching. */
  #encodeSelectedEvent(event: StoreEvent, matches: (object: Shared) => boolean): Buffer | undefined {
    const { objects } = this.#deps
    const didMatch = event.previous !== undefined && matches(objects.decode(event.previous))
    const isMatch = event.entry !== undefined && matches(objects.decode(event.entry))
    if (isMatch) return this.#encodeCurrent(didMatch ? 'MODIFIED' : 'ADDED', event)
    if (didMatch) return this.#encodePrevious('DELETED', event)
    return undefined
  }

  #encodeCurrent(type: EventType, event: StoreEvent): Buffer {
    const entry = event.entry!
    return this.#encodeCached(type, event, () =>
      this.#eventBytes(type, entry.value, entry.modRevision, () => this.#deps.objects.decode(entry)),
    )
  }

  /** Encodes the last state of the object with the event's revision. */
  #encodePrevious(type: EventType, event: StoreEvent): Buffer {
    const previousEntry = event.previous!
    return this.#encodeCached(type, event, () =>
      this.#eventBytes(type, previousEntry.value, event.revision, () => {
        const object = this.#deps.objects.decode(previousEntry)
        return { ...object, metadata: { ...object.metadata, resourceVersion: String(event.revision) } }
      }),
    )
  }

  #encodeCached(type: EventType, event: StoreEvent, encode: () => Buffer): Buffer {
    const { acceptedForm, resource } = this.#request
    if (acceptedForm.form === 'table') return encode() // not shared: a table contains ages
    const encodings = getOrCreateEncodings(event)
    const form = `${type} ${acceptedForm.media} ${acceptedForm.form} ${acceptedForm.metaVersion} ${resource.apiVersion}`
    let bytes = encodings.get(form)
    if (!bytes) {
      bytes = encode()
      encodings.set(form, bytes)
    }
    return bytes
  }

  #eventBytes(type: EventType, value: Uint8Array, revision: number, decode: () => Shared): Buffer {
    const { acceptedForm, resource } = this.#request
    if (acceptedForm.form === 'object' && acceptedForm.media !== 'protobuf' && !resource.kind.viewOf)
      return encodeEvent(type, objectBytes(resource, value, revision))
    const object = viewOf(resource, decode())
    switch (acceptedForm.form) {
      case 'table':
        return encodeEvent(type, this.#tableOf(object, revision))
      case 'partial':
      case 'partialList':
        return this.#encode(type, partialOf(object, acceptedForm.metaVersion), partialObjectMetadata)
      default:
        return this.#encode(
          type,
          { kind: resource.kind.kind, apiVersion: resource.apiVersion, ...object },
          resource.kind.type,
        )
    }
  }

  #encode(type: EventType, value: TypedValue, valueType: ObjectType): Buffer {
    if (this.#request.acceptedForm.media !== 'protobuf') return encodeEvent(type, value)
    return encodeFrame(type, encodeTypedValue(valueType, value))
  }

  /** Returns a table with one row. The first table of the stream has the columns. */
  #tableOf(object: KubeObject, revision: number): unknown {
    const { acceptedForm, resource, include } = this.#request
    const hasColumns = !this.#hasSentColumns
    this.#hasSentColumns = true
    const { metaVersion } = acceptedForm
    const meta = { resourceVersion: String(revision) }
    return tableOf(resource, [object], meta, {
      metaVersion,
      include,
      nowMs: this.#deps.clock.nowMs(),
      isList: false,
      hasColumns,
    })
  }

  /** Writes a bookmark. In a table, it is a row of an object that has only metadata. */
  #writeBookmark(revision: number, endsInitialEvents = false): void {
    const { acceptedForm, resource } = this.#request
    const annotations = endsInitialEvents ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}
    const meta = { resourceVersion: String(revision), ...annotations }
    if (acceptedForm.form === 'table') {
      const object: KubeObject = { ...(zeroOf(resource.kind.type) as KubeObject), metadata: meta }
      this.#write(encodeEvent('BOOKMARK', this.#tableOf(object, revision)))
      return
    }
    const isObject = acceptedForm.form === 'object'
    const value = {
      kind: isObject ? resource.kind.kind : 'PartialObjectMetadata',
      apiVersion: isObject ? resource.apiVersion : `meta.k8s.io/${acceptedForm.metaVersion}`,
      metadata: acceptedForm.media === 'protobuf' ? meta : { ...meta, creationTimestamp: null },
    }
    this.#write(this.#encode('BOOKMARK', value, isObject ? resource.kind.type : partialObjectMetadata))
  }

  #scheduleEnd(): void {
    const { clock, random } = this.#deps
    const durationMs = 1_000 * (this.#request.options.timeoutSeconds || 1800 * (1 + random()))
    this.#scheduleNext({ startMs: clock.monotonicMs(), durationMs, afterMs: 0 })
  }

  /** Schedules the next bookmark, or the end. The times are those since the start. */
  #scheduleNext({ startMs, durationMs, afterMs }: { startMs: number; durationMs: number; afterMs: number }): void {
    const nextMs = this.#request.options.allowBookmarks ? nextBookmarkMs(afterMs, durationMs) : durationMs
    this.#after(startMs + nextMs - this.#deps.clock.monotonicMs(), () => {
      if (nextMs === durationMs) return this.#end()
      if (this.#watch) this.#writeBookmark(this.#watch.revision)
      this.#scheduleNext({ startMs, durationMs, afterMs: nextMs })
    })
  }

  #after(ms: number, run: () => void): void {
    this.#cancelTimer = this.#deps.clock.after(Math.max(0, ms), () => {
      if (!this.#isEnded) run()
    })
  }

  #write(chunk: Uint8Array): void {
    if (this.#isEnded) return
    this.#sink.write(chunk)
    if (this.#sink.pendingBytes > WATCH_BACKLOG_BYTES_MAX) this.#cut()
  }

  #cut(): void {
    this.#stop()
    this.#sink.cut()
  }

  /** Sends an ERROR event, then ends the stream. */
  #fail(error: unknown): void {
    if (this.#isEnded) return
    this.#write(this.#encode('ERROR', statusOf(error), statusType))
    this.#end()
  }

  /** Ends the stream. Nothing is written after this, although the connection closes later. */
  #end(): void {
    this.#stop()
    this.#sink.end()
  }

  #stop(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#watch?.close()
    this.#cancelTimer()
    this.#onStop()
  }
}

const NOOP = () => {}

/** Returns the time of the first bookmark after `afterMs`, or the duration if none is due before the end. */
function nextBookmarkMs(afterMs: number, durationMs: number): number {
  const regularMs = (Math.floor(afterMs / BOOKMARK_INTERVAL_MS) + 1) * BOOKMARK_INTERVAL_MS
  const lastMs = durationMs - LAST_BOOKMARK_MS
  const hasLast = lastMs > LAST_BOOKMARK_MS && lastMs > afterMs
  return Math.min(regularMs, hasLast ? lastMs : durationMs, durationMs)
}

function statusOf(error: unknown) {
  if (error instanceof ApiError) return error.toStatus()
  if (error instanceof CompactedError) {
    return expired(
      `too old resource version: changes up to ${error.compactedRevision} are compacted; list again and watch from there`,
    ).toStatus()
  }
  const message = error instanceof Error ? error.message : String(error)
  return new ApiError(503, 'ServiceUnavailable', `the watch ended: ${message}; watch again`).toStatus()
}

function encodeEvent(type: EventType, object: Buffer | unknown): Buffer {
  const head = `{"type":"${type}","object":`
  if (!Buffer.isBuffer(object)) return Buffer.from(`${head}${JSON.stringify(object)}}\n`)
  const bytes = Buffer.allocUnsafe(head.length + object.length + 2)
  bytes.write(head, 0, 'latin1')
  object.copy(bytes, head.length)
  bytes[bytes.length - 2] = 0x7d // }
  bytes[bytes.length - 1] = 0x0a // newline
  return bytes
}

/** The encodings of an event by form. The WeakMap drops them together with the event. */
const encodingsByEvent = new WeakMap<StoreEvent, Map<string, Buffer>>()
function getOrCreateEncodings(event: StoreEvent): Map<string, Buffer> {
  const encodings = encodingsByEvent.get(event) ?? new Map<string, Buffer>()
  encodingsByEvent.set(event, encodings)
  return encodings
}

const encodingsByBatch = new WeakMap<readonly StoreEvent[], Map<string, Buffer>>()

/** Encodes a batch of events as one chunk, which streams of the same version and media type without selectors share. */
function encodeSharedBatch(
  { resource, acceptedForm }: WatchRequest,
  events: readonly StoreEvent[],
  encode: (event: StoreEvent) => Buffer,
): Buffer {
  const encodings = encodingsByBatch.get(events) ?? new Map<string, Buffer>()
  encodingsByBatch.set(events, encodings)
  const form = `${acceptedForm.media} ${resource.apiVersion}`
  let bytes = encodings.get(form)
  if (!bytes) {
    bytes = events.length === 1 ? encode(events[0]!) : Buffer.concat(events.map(encode))
    encodings.set(form, bytes)
  }
  return bytes
}
