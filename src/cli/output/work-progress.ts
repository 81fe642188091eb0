// Shows the progress of long work on standard error: the amount done, the rate and the remaining time. On a terminal
// one line is redrawn; elsewhere a plain line follows every ten seconds. Work that ends sooner shows nothing there.
import type { Clock } from '../../base/clock.ts'
import { drawBar } from './bar.ts'
import { formatDuration, formatPercent, formatRate, formatSize } from './units.ts'

export interface ProgressOutput {
  write(text: string): void
  /** Undefined if the output is not a terminal. Called for every draw, because a terminal can be resized. */
  columns?(): number
}

export interface WorkProgress {
  /** Sets the amount that is done, in the unit of the work. */
  set(doneAmount: number): void
  /** Adds to the amount that is done. */
  add(amount: number): void
  /** Removes the line from a terminal. */
  finish(): void
}

export interface WorkOptions {
  /** What the command does, such as `Reading the store`. */
  readonly title: string
  /** Bytes are formatted as sizes, other amounts as numbers before this noun, such as `pages`. */
  readonly unit: string
  /** Undefined if it is not known. The remaining time is then not known either. */
  readonly total?: number
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly output: ProgressOutput
}

const REDRAW_MS = 100
/** Without a terminal, lines are at least this far apart. */
export const PLAIN_LINE_MS = 10_000
const BAR_WIDTH = 20
const COLUMNS_MIN = 20
const CLEAR_LINE = '\r\u001b[2K'

export function createWorkProgress({ title, unit, total, clock, output }: WorkOptions): WorkProgress {
  const startedMs = clock.monotonicMs()
  let shownMs = output.columns ? Number.NEGATIVE_INFINITY : startedMs
  let doneAmount = 0
  let isDrawn = false

  function show(): void {
    const nowMs = clock.monotonicMs()
    if (nowMs - shownMs < (output.columns ? REDRAW_MS : PLAIN_LINE_MS)) return
    shownMs = nowMs
    const text = describeProgress({ doneAmount, total, unit, elapsedMs: nowMs - startedMs })
    if (!output.columns) {
      output.write(`${title}: ${text}\n`)
      return
    }
    isDrawn = true
    const bar = total === undefined ? '' : `[${drawBar(doneAmount / Math.max(1, total), BAR_WIDTH)}] `
    const width = Math.max(output.columns(), COLUMNS_MIN) - 1 // a wrapped line cannot be redrawn
    output.write(`${CLEAR_LINE}${`${title} ${bar}${text}`.slice(0, width)}`)
  }

  const set = (amount: number) => {
    doneAmount = amount
    show()
  }
  return {
    set,
    add: (amount) => set(doneAmount + amount),
    finish() {
      if (isDrawn) output.write(CLEAR_LINE)
      isDrawn = false
    },
  }
}

interface ProgressAmounts {
  readonly doneAmount: number
  readonly total: number | undefined
  readonly unit: string
  readonly elapsedMs: number
}

/** Returns `40%, 120Mi of 300Mi, 60Mi/s, about 3 s left`. Unknown parts are omitted. */
function describeProgress({ doneAmount, total, unit, elapsedMs }: ProgressAmounts): string {
  const isBytes = unit === 'bytes'
  const format = (amount: number) => (isBytes ? formatSize(amount) : String(amount))
  const noun = isBytes ? '' : ` ${unit}`
  const perSecond = elapsedMs > 0 ? (doneAmount * 1_000) / elapsedMs : 0
  const rate = isBytes ? `${formatSize(perSecond)}/s` : formatRate(perSecond)
  const rates = perSecond > 0 ? [rate] : []
  if (total === undefined) return [`${format(doneAmount)}${noun}`, ...rates].join(', ')
  const timeLeft =
    perSecond > 0 && doneAmount < total
      ? [`about ${formatDuration(((total - doneAmount) / perSecond) * 1_000)} left`]
      : []
  const share = formatPercent(total === 0 ? 1 : doneAmount / total)
  return [share, `${format(doneAmount)} of ${format(total)}${noun}`, ...rates, ...timeLeft].join(', ')
}

const COLUMNS_DEFAULT = 80

/** Returns standard error of the process. */
export const standardError = (): ProgressOutput => ({
  write: (text) => void process.stderr.write(text),
  ...(process.stderr.isTTY ? { columns: () => process.stderr.columns || COLUMNS_DEFAULT } : {}),
})
