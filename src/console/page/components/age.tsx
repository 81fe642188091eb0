// Shows an age, or the time until a moment, which updates every second without rendering its row again.
import { formatAge, formatTime } from '../logic/format.ts'
import { nowMs } from '../state/now.ts'

export const Age = ({ timeMs }: { readonly timeMs: number | undefined }) =>
  timeMs === undefined ? (
    <span class="muted">–</span>
  ) : (
    <time dateTime={new Date(timeMs).toISOString()} title={formatTime(timeMs)}>
      {formatAge(timeMs, nowMs.value)}
    </time>
  )

/** The time until a moment: `in 12s`, or `now`. */
export const Until = ({ timeMs }: { readonly timeMs: number | undefined }) => {
  if (timeMs === undefined) return <span class="muted">–</span>
  const leftMs = timeMs - nowMs.value
  return <time title={formatTime(timeMs)}>{leftMs < 1_000 ? 'now' : `in ${formatAge(0, leftMs)}`}</time>
}
