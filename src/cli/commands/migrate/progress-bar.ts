// How far a migration is, on a terminal: every claim that ends is a line, and below them stands a bar with counts and the
// time it will still take, changed in place.
import type { Clock } from '../../../base/clock.ts'
import { type ClaimResult, endLine, type Progress } from '../../bulk/index.ts'

export interface BarTerminal {
  write(text: string): void
  columns(): number
}

export interface ProgressBar extends Progress {
  /** Leaves the last bar where it is and the cursor below it. */
  finish(): void
}

const REDRAW_MS = 100
const BAR_WIDTH_MAX = 30
const COLUMNS_MIN = 20
const CLEAR_LINE = '\r\u001b[2K'

export function barProgress(terminal: BarTerminal, total: number, clock: Pick<Clock, 'monotonicMs'>): ProgressBar {
  const atWork = new Set<string>()
  const startedMs = clock.monotonicMs()
  let drawnMs = Number.NEGATIVE_INFINITY
  let ended = 0
  let failed = 0
  let isShown = false

  function draw(above = '', isForced = false): void {
    const nowMs = clock.monotonicMs()
    if (above === '' && !isForced && nowMs - drawnMs < REDRAW_MS) return
    drawnMs = nowMs
    const line = barLine(
      { total, ended, failed, atWork: atWork.size, elapsedMs: nowMs - startedMs },
      terminal.columns(),
    )
    terminal.write(`${isShown ? CLEAR_LINE : ''}${above}${line}`)
    isShown = true
  }

  return {
    working(key) {
      atWork.add(key)
      draw()
    },
    ended(result: ClaimResult) {
      atWork.delete(result.key)
      ended++
      if (result.is === 'failed') failed++
      draw(`${endLine(result)}\n`)
    },
    finish() {
      draw('', true)
      terminal.write('\n')
      isShown = false
    },
  }
}

export interface BarCounts {
  readonly total: number
  readonly ended: number
  readonly failed: number
  readonly atWork: number
  readonly elapsedMs: number
}

/** Never as wide as the terminal: a line that wraps cannot be taken back. */
export function barLine({ total, ended, failed, atWork, elapsedMs }: BarCounts, columns: number): string {
  const share = total === 0 ? 1 : ended / total
  const leftMs = ended === 0 ? undefined : (elapsedMs / ended) * (total - ended)
  const counts = [
    `${ended} of ${total}`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(atWork > 0 ? [`${atWork} at work`] : []),
    ...(leftMs === undefined || ended === total ? [] : [`about ${inWords(leftMs)} left`]),
  ].join(', ')
  const text = ` ${String(Math.floor(share * 100)).padStart(3)} %  ${counts}`
  const width = Math.max(columns, COLUMNS_MIN) - 1
  const barWidth = Math.min(BAR_WIDTH_MAX, width - text.length - 2)
  if (barWidth < 5) return text.trim().slice(0, width)
  const full = Math.floor(share * barWidth)
  return `[${'█'.repeat(full)}${'░'.repeat(barWidth - full)}]${text}`
}

/** `43 s`, `5 min`, `2 h 10 min`. */
export function inWords(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  if (seconds < 90) return `${seconds} s`
  const minutes = Math.ceil(seconds / 60)
  if (minutes < 90) return `${minutes} min`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
