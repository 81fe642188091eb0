// Shows the progress of a bulk command. On a terminal, the last lines show the claims in progress, or a bar
// (progress-bar.ts). Without a terminal, every change is printed as a line.
import type { Clock } from '../../base/clock.ts'
import type { ObjectKey } from '../../client/index.ts'
import { barProgress } from './progress-bar.ts'
import { type Progress, resultLine, type Terminal, toSingleLine } from './progress-line.ts'

export type ProgressStyle = 'lines' | 'bar'

export function createProgress(
  style: ProgressStyle,
  output: 'text' | 'json',
  { clock, terminal, write }: ProgressDeps,
  total: number,
): Progress {
  if (output === 'json') return silentProgress
  if (!terminal) return plainProgress(write)
  return style === 'bar'
    ? barProgress({ ...terminal, write }, total, clock)
    : terminalProgress({ ...terminal, write }, total)
}

interface ProgressDeps {
  readonly clock: Clock
  readonly terminal: Pick<Terminal, 'columns'> | undefined
  write(truncated: string): void
}

const silentProgress: Progress = { update() {}, complete() {}, finish() {} }

export const plainProgress = (write: (truncated: string) => void): Progress => ({
  update: (key, message) => write(`${key}: ${toSingleLine(message)}\n`),
  complete: (result) => write(`${resultLine(result)}\n`),
  finish() {},
})

export function terminalProgress({ write, columns }: Terminal, total: number): Progress {
  const inProgress = new Map<ObjectKey, string>()
  let drawnLines = 0
  let ended = 0

  function draw(linesAbove = ''): void {
    const lines = [...inProgress].map(([key, message]) => `  ${key}: ${toSingleLine(message)}`)
    if (inProgress.size > 0) lines.push(`  ${ended} of ${total} done`)
    const width = Math.max(columns(), COLUMNS_MIN)
    const truncated = lines.map((line) => (line.length < width ? line : `${line.slice(0, width - 2)}…`)) // a wrapped line cannot be redrawn
    write(
      `${drawnLines > 0 ? `${UP(drawnLines)}${CLEAR_BELOW}` : ''}${linesAbove}${truncated.map((line) => `${line}\n`).join('')}`,
    )
    drawnLines = truncated.length
  }

  return {
    update(key, message) {
      inProgress.set(key, message)
      draw()
    },
    complete(result) {
      inProgress.delete(result.key)
      ended++
      draw(`${resultLine(result)}\n`)
    },
    finish() {},
  }
}

const COLUMNS_MIN = 20
const UP = (lines: number) => `\u001b[${lines}A`
const CLEAR_BELOW = '\u001b[0J'
