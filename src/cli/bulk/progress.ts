// Shows the progress of a bulk command. On a terminal, the last lines show the claims in progress, or a bar
// (progress-bar.ts). Without a terminal, every change is printed as a line. With JSON output, nothing is shown.
import type { Clock } from '../../base/clock.ts'
import type { ObjectKey } from '../../client/index.ts'
import { createBarProgress } from './progress-bar.ts'
import { formatResultLine, type Progress, type Terminal, toSingleLine } from './progress-line.ts'

export type ProgressStyle = 'lines' | 'bar'

export function createProgress(
  style: ProgressStyle,
  output: 'text' | 'json',
  { clock, terminal, write }: ProgressDeps,
  total: number,
): Progress {
  if (output === 'json') return silentProgress
  if (!terminal) return createPlainProgress(write)
  return style === 'bar'
    ? createBarProgress({ ...terminal, write }, total, clock)
    : createTerminalProgress({ ...terminal, write }, total)
}

interface ProgressDeps {
  readonly clock: Clock
  readonly terminal: Pick<Terminal, 'columns'> | undefined
  write(text: string): void
}

const silentProgress: Progress = { update() {}, complete() {}, finish() {} }

export const createPlainProgress = (write: (text: string) => void): Progress => ({
  update: (key, message) => write(`${key}: ${toSingleLine(message)}\n`),
  complete: (result) => write(`${formatResultLine(result)}\n`),
  finish() {},
})

export function createTerminalProgress({ write, columns }: Terminal, total: number): Progress {
  const inProgress = new Map<ObjectKey, string>()
  let drawnLineCount = 0
  let completedCount = 0

  function draw(linesAbove = ''): void {
    const lines = [...inProgress].map(([key, message]) => `  ${key}: ${toSingleLine(message)}`)
    if (inProgress.size > 0) lines.push(`  ${completedCount} of ${total} done`)
    const width = Math.max(columns(), COLUMNS_MIN)
    const truncatedLines = lines.map((line) => (line.length < width ? line : `${line.slice(0, width - 2)}…`)) // a wrapped line cannot be redrawn
    write(
      `${drawnLineCount > 0 ? `${cursorUp(drawnLineCount)}${CLEAR_BELOW}` : ''}${linesAbove}${truncatedLines.map((line) => `${line}\n`).join('')}`,
    )
    drawnLineCount = truncatedLines.length
  }

  return {
    update(key, message) {
      inProgress.set(key, message)
      draw()
    },
    complete(result) {
      inProgress.delete(result.key)
      completedCount++
      draw(`${formatResultLine(result)}\n`)
    },
    finish() {},
  }
}

const COLUMNS_MIN = 20
const cursorUp = (lines: number) => `\u001b[${lines}A`
const CLEAR_BELOW = '\u001b[0J'
