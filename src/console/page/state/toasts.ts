// Short messages about the result of an action. They disappear after a few seconds; failures are shown longer.
import { signal } from '@preact/signals'
import type { Tone } from '../logic/claim-status.ts'

interface Toast {
  readonly id: number
  readonly tone: Tone
  readonly text: string
}

export const toasts = signal<readonly Toast[]>([])

const TOAST_MS = 6_000
const FAILURE_TOAST_MS = 15_000
const TOASTS_MAX = 4
let nextId = 1

export function showToast(text: string, tone: Tone = 'ok'): void {
  const id = nextId++
  toasts.value = [...toasts.value, { id, tone, text }].slice(-TOASTS_MAX)
  setTimeout(
    () => {
      toasts.value = toasts.value.filter((toast) => toast.id !== id)
    },
    tone === 'bad' ? FAILURE_TOAST_MS : TOAST_MS,
  )
}
