// Shows progress on a terminal as a bar with counts and the remaining time, below the lines of the finished claims.
import type { Clock } from '../../base/clock.ts'
import type { ObjectKey } from '../../client/index.ts'
import { type Progress, resultLine, type Terminal } from './progress-line.ts'

const REDRAW_MS = 100
const BAR_WIDTH_MAX = 30
const COLUMNS_MIN = 20
const CLEAR_LINE = '\r\u001b[2K'

export function barProgress(terminal: Terminal, total: number, clock: Pick<Clock, 'monotonicMs'>): Progress {
  const inProgress = new Set<ObjectKey>()
  const startedMs = clock.monotonicMs()
  let drawnMs = Number.NEGATIVE_INFINITY
  let ended = 0
  let failed = 0
  let isShown = false

  function draw(linesAbove = '', isForced = false): void {
    const nowMs = clock.monotonicMs()
    if (linesAbove === '' && !isForced && nowMs - drawnMs < REDRAW_MS) return
    drawnMs = nowMs
    const line = renderBar(
      { total, ended, failed, inProgress: inProgress.size, elapsedMs: nowMs - startedMs },
      terminal.columns(),
    )
    terminal.write(`${isShown ? CLEAR_LINE : ''}${linesAbove}${line}`)
    isShown = true
  }

  return {
    update(key) {
      inProgress.add(key)
      draw()
    },
    complete(result) {
      inProgress.delete(result.key)
      ended++
      if (result.is === 'failed') failed++
      draw(`${resultLine(result)}\n`)
    },
    finish() {
      draw('', true)
      terminal.write('\n')
      isShown = false
    },
  }
}

interface BarCounts {
  readonly total: number
  readonly ended: number
  readonly failed: number
  readonly inProgress: number
  readonly elapsedMs: number
}

/** Returns a line that is narrower than the terminal, because a wrapped line cannot be redrawn. */
export function renderBar({ total, ended, failed, inProgress, elapsedMs }: BarCounts, columns: number): string {
  const fraction = total === 0 ? 1 : ended / total
  const remainingMs = ended === 0 ? undefined : (elapsedMs / ended) * (total - ended)
  const counts = [
    `${ended} of ${total}`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(inProgress > 0 ? [`${inProgress} in progress`] : []),
    ...(remainingMs === undefined || ended === total ? [] : [`about ${formatDuration(remainingMs)} left`]),
  ].join(', ')
  const text = ` ${String(Math.floor(fraction * 100)).padStart(3)} %  ${counts}`
  const width = Math.max(columns, COLUMNS_MIN) - 1
  const barWidth = Math.min(BAR_WIDTH_MAX, width - text.length - 2)
  if (barWidth < 5) return text.trim().slice(0, width)
  const filled = Math.floor(fraction * barWidth)
  return `[${'█'.repeat(filled)}${'░'.repeat(barWidth - filled)}]${text}`
}

/** Formats a duration as `43 s`, `5 min` or `2 h 10 min`. */
export function formatDuration(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  if (seconds < 90) return `${seconds} s`
  const minutes = Math.ceil(seconds / 60)
  if (minutes < 90) return `${minutes} min`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
