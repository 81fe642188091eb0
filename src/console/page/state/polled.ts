// Data that the console computes on request, such as usage and causes. It is read while a component uses it, at an interval that
// pauses in a hidden tab; the last response stays visible when a later request fails.
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { messageOf, request } from './api.ts'

interface PolledState<T> {
  readonly value?: T
  /** Why the last request failed. */
  readonly problem?: string
  readonly receivedMs?: number
}

export class Polled<T> {
  readonly state = signal<PolledState<T>>({})
  readonly #path: string
  readonly #intervalMs: number
  #users = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #isRunning = false
  #isRequestedAgain = false

  constructor(path: string, intervalMs: number) {
    this.#path = path
    this.#intervalMs = intervalMs
  }

  /** Reads now, or immediately after the request in flight. */
  refresh(): void {
    if (this.#users === 0) return
    if (this.#isRunning) this.#isRequestedAgain = true
    else void this.#read()
  }

  use(): () => void {
    if (++this.#users === 1) void this.#read()
    return () => {
      if (--this.#users === 0) clearTimeout(this.#timer)
    }
  }

  async #read(): Promise<void> {
    clearTimeout(this.#timer)
    this.#isRunning = true
    try {
      if (!document.hidden) {
        const value = await request<T>(this.#path)
        this.state.value = { value, receivedMs: Date.now() }
      }
    } catch (error) {
      this.state.value = { ...this.state.value, problem: messageOf(error) }
    } finally {
      this.#isRunning = false
    }
    if (this.#users === 0) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#read(), this.#isRequestedAgain ? 0 : this.#intervalMs)
    this.#isRequestedAgain = false
  }
}

/** Reads the data while the component is mounted. */
export function usePolled<T>(polled: Polled<T>): PolledState<T> {
  useEffect(() => polled.use(), [polled])
  return polled.state.value
}
