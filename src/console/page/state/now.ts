// The current time as a signal that changes every second, for ages and countdowns. It does not change in a hidden tab.
import { signal } from '@preact/signals'

export const nowMs = signal(Date.now())

export function startClock(): void {
  const tick = () => {
    if (!document.hidden) nowMs.value = Date.now()
  }
  setInterval(tick, 1_000)
  document.addEventListener('visibilitychange', tick)
}
