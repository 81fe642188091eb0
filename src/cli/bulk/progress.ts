// Shows the progress of a bulk command. On a terminal the claims in progress are redrawn in the last lines, or summed up in a
// bar (progress-bar.ts); elsewhere every change is a line.
import type { Clock } from '../../base/clock.ts'
import type { ObjectKey } from '../../client/index.ts'
import { barProgress } from './progress-bar.ts'
import { endLine, oneLine, type Progress, type Terminal } from './progress-line.ts'

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
  write(text: string): void
}

const silentProgress: Progress = { working() {}, ended() {}, finish() {} }

export const plainProgress = (write: (text: string) => void): Progress => ({
  working: (key, message) => write(`${key}: ${oneLine(message)}\n`),
  ended: (result) => write(`${endLine(result)}\n`),
  finish() {},
})

export function terminalProgress({ write, columns }: Terminal, total: number): Progress {
  const inProgress = new Map<ObjectKey, string>()
  let shown = 0
  let ended = 0

  function draw(above = ''): void {
    const lines = [...inProgress].map(([key, message]) => `  ${key}: ${oneLine(message)}`)
    if (inProgress.size > 0) lines.push(`  ${ended} of ${total} done`)
    const width = Math.max(columns(), COLUMNS_MIN)
    const text = lines.map((line) => (line.length < width ? line : `${line.slice(0, width - 2)}…`)) // a wrapped line cannot be redrawn
    write(`${shown > 0 ? `${UP(shown)}${CLEAR_BELOW}` : ''}${above}${text.map((line) => `${line}\n`).join('')}`)
    shown = text.length
  }

  return {
    working(key, message) {
      inProgress.set(key, message)
      draw()
    },
    ended(result) {
      inProgress.delete(result.key)
      ended++
      draw(`${endLine(result)}\n`)
    },
    finish() {},
  }
}

const COLUMNS_MIN = 20
const UP = (lines: number) => `\u001b[${lines}A`
const CLEAR_BELOW = '\u001b[0J'
