// Shows progress on a terminal as a bar with counts, rate and remaining time, below the lines of the finished claims.
import type { Clock } from '../../base/clock.ts'
import type { ObjectKey } from '../../client/index.ts'
import { drawBar } from '../output/bar.ts'
import { formatDuration, formatRate } from '../output/units.ts'
import { formatResultLine, type Progress, type Terminal } from './progress-line.ts'

const REDRAW_MS = 100
const BAR_WIDTH_MAX = 30
const COLUMNS_MIN = 20
const CLEAR_LINE = '\r\u001b[2K'

export function createBarProgress(terminal: Terminal, totalCount: number, clock: Pick<Clock, 'monotonicMs'>): Progress {
  const keysInProgress = new Set<ObjectKey>()
  const startedMs = clock.monotonicMs()
  let drawnMs = Number.NEGATIVE_INFINITY
  let completedCount = 0
  let failedCount = 0
  let isShown = false

  function draw(linesAbove = '', isForced = false): void {
    const nowMs = clock.monotonicMs()
    if (linesAbove === '' && !isForced && nowMs - drawnMs < REDRAW_MS) return
    drawnMs = nowMs
    const line = renderBar(
      { totalCount, completedCount, failedCount, inProgressCount: keysInProgress.size, elapsedMs: nowMs - startedMs },
      terminal.columns(),
    )
    terminal.write(`${isShown ? CLEAR_LINE : ''}${linesAbove}${line}`)
    isShown = true
  }

  return {
    update(key) {
      keysInProgress.add(key)
      draw()
    },
    complete(result) {
      keysInProgress.delete(result.key)
      completedCount++
      if (result.is === 'failed') failedCount++
      draw(`${formatResultLine(result)}\n`)
    },
    finish() {
      draw('', true)
      terminal.write('\n')
      isShown = false
    },
  }
}

interface BarCounts {
  readonly totalCount: number
  readonly completedCount: number
  readonly failedCount: number
  readonly inProgressCount: number
  readonly elapsedMs: number
}

/** Returns a line that is narrower than a terminal of at least 20 columns, because a wrapped line cannot be redrawn. */
export function renderBar(
  { totalCount, completedCount, failedCount, inProgressCount, elapsedMs }: BarCounts,
  columns: number,
): string {
  const fraction = totalCount === 0 ? 1 : completedCount / totalCount
  const counts = [
    `${completedCount} of ${totalCount}`,
    ...(failedCount > 0 ? [`${failedCount} failed`] : []),
    ...(inProgressCount > 0 ? [`${inProgressCount} in progress`] : []),
    ...describeSpeed({ totalCount, completedCount, elapsedMs }),
  ].join(', ')
  const text = ` ${String(Math.floor(fraction * 100)).padStart(3)} %  ${counts}`
  const width = Math.max(columns, COLUMNS_MIN) - 1
  const barWidth = Math.min(BAR_WIDTH_MAX, width - text.length - 2)
  if (barWidth < 5) return text.trim().slice(0, width)
  return `[${drawBar(fraction, barWidth)}]${text}`
}

/** Returns the rate and the remaining time, as far as they are known. */
export function describeSpeed({
  totalCount,
  completedCount,
  elapsedMs,
}: Pick<BarCounts, 'totalCount' | 'completedCount' | 'elapsedMs'>): readonly string[] {
  if (completedCount === 0 || completedCount === totalCount || elapsedMs <= 0) return []
  const remainingMs = (elapsedMs / completedCount) * (totalCount - completedCount)
  return [formatRate((completedCount * 1_000) / elapsedMs), `about ${formatDuration(remainingMs)} left`]
}
