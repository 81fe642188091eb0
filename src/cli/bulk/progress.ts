// Shows the progress of a bulk command. On a terminal, the last lines show the claims in progress, or a bar
// (progress-bar.ts). Without a terminal, every change is printed as a line, and the counts every ten seconds while claims
// change. With JSON or YAML output, nothing is shown.
import type { Clock } from '../../base/clock.ts'
import type { ObjectKey } from '../../client/index.ts'
import type { OutputFormat } from '../output/format-output.ts'
import { PLAIN_LINE_MS } from '../output/work-progress.ts'
import { createBarProgress, describeSpeed } from './progress-bar.ts'
import { formatResultLine, type Progress, type Terminal, toSingleLine } from './progress-line.ts'

export type ProgressStyle = 'lines' | 'bar'

export function createProgress(
  style: ProgressStyle,
  output: OutputFormat,
  { clock, terminal, write }: ProgressDeps,
  total: number,
): Progress {
  if (output !== 'text') return silentProgress
  if (!terminal) return createPlainProgress(write, total, clock)
  return style === 'bar'
    ? createBarProgress({ ...terminal, write }, total, clock)
    : createTerminalProgress({ ...terminal, write }, total, clock)
}

interface ProgressDeps {
  readonly clock: Clock
  readonly terminal: Pick<Terminal, 'columns'> | undefined
  write(text: string): void
}

const silentProgress: Progress = { update() {}, complete() {}, finish() {} }

export function createPlainProgress(
  write: (text: string) => void,
  totalCount: number,
  clock: Pick<Clock, 'monotonicMs'>,
): Progress {
  const startedMs = clock.monotonicMs()
  let countedMs = startedMs
  let completedCount = 0

  function writeLine(line: string): void {
    const nowMs = clock.monotonicMs()
    const isDue = nowMs - countedMs >= PLAIN_LINE_MS
    if (isDue) countedMs = nowMs
    const speed = describeSpeed({ totalCount, completedCount, elapsedMs: nowMs - startedMs })
    const counts = [`${completedCount} of ${totalCount} done`, ...speed].join(', ')
    write(`${line}\n${isDue ? `${counts}\n` : ''}`)
  }

  return {
    update: (key, message) => writeLine(`${key}: ${toSingleLine(message)}`),
    complete(result) {
      completedCount++
      writeLine(formatResultLine(result))
    },
    finish() {},
  }
}

export function createTerminalProgress(
  { write, columns }: Terminal,
  totalCount: number,
  clock: Pick<Clock, 'monotonicMs'>,
): Progress {
  const startedMs = clock.monotonicMs()
  const messagesByKey = new Map<ObjectKey, string>()
  let drawnLineCount = 0
  let completedCount = 0

  function draw(linesAbove = ''): void {
    const lines = [...messagesByKey].map(([key, message]) => `  ${key}: ${toSingleLine(message)}`)
    const speed = describeSpeed({ totalCount, completedCount, elapsedMs: clock.monotonicMs() - startedMs })
    if (messagesByKey.size > 0) lines.push(`  ${[`${completedCount} of ${totalCount} done`, ...speed].join(', ')}`)
    const width = Math.max(columns(), COLUMNS_MIN)
    const truncatedLines = lines.map((line) => (line.length < width ? line : `${line.slice(0, width - 2)}…`)) // a wrapped line cannot be redrawn
    write(
      `${drawnLineCount > 0 ? `${cursorUp(drawnLineCount)}${CLEAR_BELOW}` : ''}${linesAbove}${truncatedLines.map((line) => `${line}\n`).join('')}`,
    )
    drawnLineCount = truncatedLines.length
  }

  return {
    update(key, message) {
      messagesByKey.set(key, message)
      draw()
    },
    complete(result) {
      messagesByKey.delete(result.key)
      completedCount++
      draw(`${formatResultLine(result)}\n`)
    },
    finish() {},
  }
}

const COLUMNS_MIN = 20
const cursorUp = (lines: number) => `\u001b[${lines}A`
const CLEAR_BELOW = '\u001b[0J'
