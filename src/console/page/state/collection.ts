// The rows of one watched path. Each object is reduced to a small row on arrival, so that 50,000 claims fit into the memory of a
// tab.
import { signal } from '@preact/signals'
import type { ConsoleObject, WatchMessage } from '../../protocol.ts'
import type { Identified, RowChange } from '../logic/sorted-view.ts'

interface CollectionError {
  readonly code: number
  readonly reason: string
  readonly message: string
  /** Absent if the server does not retry. */
  readonly retryAfterMs?: number
}

export interface CollectionState {
  readonly is: 'idle' | 'loading' | 'synced' | 'failed'
  readonly error?: CollectionError
}

export class Collection<R extends Identified> {
  readonly rows = new Map<string, R>()
  /** Changes with every flush in which rows have changed. */
  readonly version = signal(0)
  readonly state = signal<CollectionState>({ is: 'idle' })
  /** The revision of the last applied message, with which a watch is resumed. */
  rev: string | undefined
  readonly #project: (object: ConsoleObject) => R
  readonly #listeners = new Set<(change: RowChange<R>) => void>()
  /** The objects of a list in progress. Objects that it does not contain are removed when it is complete. */
  #listed: Set<string> | undefined

  constructor(project: (object: ConsoleObject) => R) {
    this.#project = project
  }

  /** Calls the listener for each change. Returns a function that ends it. */
  onChange(listener: (change: RowChange<R>) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Returns whether rows have changed. */
  apply(message: WatchMessage): boolean {
    switch (message.type) {
      case 'RESET':
        this.#listed = new Set()
        this.rev = undefined
        if (this.state.value.is !== 'synced') this.state.value = { is: 'loading' }
        return false
      case 'ITEMS':
        for (const object of message.objects) {
          this.#listed?.add(object.metadata.uid)
          this.#set(object)
        }
        return true
      case 'SYNCED':
        this.rev = message.rev
        if (this.state.value.is !== 'synced' || this.state.value.error) this.state.value = { is: 'synced' }
        return this.#removeUnlisted()
      case 'ERROR': {
        const { code, reason, message: text, retryAfterMs } = message
        const isFinal = retryAfterMs === undefined
        const error = { code, reason, message: text, ...(isFinal ? {} : { retryAfterMs }) }
        this.state.value = { is: isFinal ? 'failed' : this.state.value.is, error }
        return false
      }
      case 'DELETED':
        for (const { metadata } of message.objects) this.#delete(metadata.uid)
        this.rev = message.rev ?? this.rev
        return true
      default:
        for (const object of message.objects) this.#set(object)
        this.rev = message.rev ?? this.rev
        return true
    }
  }

  /** Clears the collection when it is no longer used. */
  clear(): void {
    for (const uid of [...this.rows.keys()]) this.#delete(uid)
    this.#listed = undefined
    this.rev = undefined
    this.state.value = { is: 'idle' }
  }

  #set(object: ConsoleObject): void {
    const after = this.#project(object)
    const before = this.rows.get(after.uid)
    this.rows.set(after.uid, after)
    this.#notify({ ...(before ? { before } : {}), after })
  }

  #delete(uid: string): void {
    const before = this.rows.get(uid)
    if (!before) return
    this.rows.delete(uid)
    this.#notify({ before })
  }

  #removeUnlisted(): boolean {
    const listed = this.#listed
    this.#listed = undefined
    if (!listed) return false
    for (const uid of [...this.rows.keys()]) if (!listed.has(uid)) this.#delete(uid)
    return true
  }

  #notify(change: RowChange<R>): void {
    for (const listener of this.#listeners) listener(change)
  }
}
