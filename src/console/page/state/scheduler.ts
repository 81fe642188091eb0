// Runs updates of the page once per animation frame, and at most every 100 ms while changes arrive without a pause, so that
// typing and scrolling stay smooth under thousands of changes per second.

const BUSY_INTERVAL_MS = 100

const pending = new Set<() => void>()
let isScheduled = false
let flushedMs = 0

/** Runs the function once in the next flush, however often it is requested before. Earlier requests run first. */
export function scheduleFlush(update: () => void): void {
  pending.add(update)
  if (isScheduled) return
  isScheduled = true
  const waitMs = flushedMs + BUSY_INTERVAL_MS - performance.now()
  if (waitMs <= 0) requestFrame()
  else setTimeout(requestFrame, waitMs)
}

/** A hidden tab has no frames; its updates run when it is shown. */
const requestFrame = (): void => {
  requestAnimationFrame(flush)
}

function flush(): void {
  isScheduled = false
  const updates = [...pending]
  pending.clear()
  for (const update of updates) update()
  flushedMs = performance.now()
}
