// The WebSocket that carries all watches of the tab. It reconnects with backoff and resumes every watch at its last revision.
import { signal } from '@preact/signals'
import type { WatchCommand, WatchMessage } from '../../protocol.ts'

type ConnectionState =
  | { readonly is: 'connecting' }
  | { readonly is: 'open' }
  /** `sinceMs` is the time at which the connection was lost. */
  | { readonly is: 'lost'; readonly sinceMs: number; readonly retryAtMs: number }
  | { readonly is: 'paused' }

interface Watcher {
  readonly path: string
  /** The revision at which the watch is resumed. */
  rev(): string | undefined
  receive(message: WatchMessage): void
}

interface SocketDeps {
  connect(): WebSocket
  nowMs(): number
  setTimer(run: () => void, ms: number): number
  clearTimer(timer: number): void
  random(): number
  onSessionEnd(): void
}

/** The code with which the server closes the socket when the session has ended. */
const SESSION_ENDED_CODE = 4401
const RETRY_MS_MIN = 500
const RETRY_MS_MAX = 15_000

/** Returns the delay before the n-th attempt to reconnect, with a jitter of up to half of it. */
export const reconnectDelayMs = (attempt: number, random: () => number): number =>
  Math.min(RETRY_MS_MIN * 2 ** attempt, RETRY_MS_MAX) * (0.5 + random() / 2)

export class WatchSocket {
  readonly state = signal<ConnectionState>({ is: 'connecting' })
  readonly #deps: SocketDeps
  readonly #watchers = new Map<number, Watcher>()
  #socket: WebSocket | undefined
  #nextId = 1
  #attempt = 0
  #lostMs: number | undefined
  #timer: number | undefined

  constructor(deps: SocketDeps) {
    this.#deps = deps
  }

  /** Starts a watch. Returns a function that ends it. */
  watch(watcher: Watcher): () => void {
    const id = this.#nextId++
    this.#watchers.set(id, watcher)
    if (this.state.value.is === 'open') this.#sendWatch(id, watcher)
    return () => {
      this.#watchers.delete(id)
      if (this.state.value.is === 'open') this.#send({ op: 'unwatch', id })
    }
  }

  open(): void {
    if (this.#socket) return
    if (this.#timer !== undefined) this.#deps.clearTimer(this.#timer)
    this.#timer = undefined
    const socket = this.#deps.connect()
    this.#socket = socket
    socket.onopen = () => {
      this.#attempt = 0
      this.#lostMs = undefined
      this.state.value = { is: 'open' }
      for (const [id, watcher] of this.#watchers) this.#sendWatch(id, watcher)
    }
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data as string) as WatchMessage
      this.#watchers.get(message.id)?.receive(message)
    }
    socket.onclose = ({ code }) => {
      if (this.#socket !== socket) return
      this.#retry()
      if (code === SESSION_ENDED_CODE) this.#deps.onSessionEnd()
    }
  }

  /** Closes the connection until `open` is called. */
  pause(): void {
    if (this.#timer !== undefined) this.#deps.clearTimer(this.#timer)
    this.#timer = undefined
    const socket = this.#socket
    this.#socket = undefined
    socket?.close()
    this.state.value = { is: 'paused' }
  }

  /** Reconnects now instead of after the delay. */
  retryNow(): void {
    if (this.state.value.is === 'lost') this.open()
  }

  #retry(): void {
    this.#socket = undefined
    const nowMs = this.#deps.nowMs()
    this.#lostMs ??= nowMs
    const delayMs = reconnectDelayMs(this.#attempt++, this.#deps.random)
    this.state.value = { is: 'lost', sinceMs: this.#lostMs, retryAtMs: nowMs + delayMs }
    this.#timer = this.#deps.setTimer(() => this.open(), delayMs)
  }

  #sendWatch(id: number, { path, rev }: Watcher): void {
    const revision = rev()
    this.#send({ op: 'watch', id, path, ...(revision === undefined ? {} : { rev: revision }) })
  }

  #send(command: WatchCommand): void {
    this.#socket?.send(JSON.stringify(command))
  }
}
