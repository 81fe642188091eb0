// Shows the progress of a bulk command. On a terminal the claims in progress are redrawn in the last lines; elsewhere every
// change is a line.
import type { ObjectKey } from '../../client/index.ts'
import type { ClaimResult } from './results.ts'

export interface Progress {
  working(key: ObjectKey, message: string): void
  ended(result: ClaimResult): void
}

export const silentProgress: Progress = { working() {}, ended() {} }

export const plainProgress = (write: (text: string) => void): Progress => ({
  working: (key, message) => write(`${key}: ${oneLine(message)}\n`),
  ended: (result) => write(`${endLine(result)}\n`),
})

export interface Terminal {
  write(text: string): void
  /** Read for every draw: windows change their size. */
  columns(): number
}

export function terminalProgress({ write, columns }: Terminal, total: number): Progress {
  const atWork = new Map<ObjectKey, string>()
  let shown = 0
  let ended = 0

  function draw(above = ''): void {
    const lines = [...atWork].map(([key, message]) => `  ${key}: ${oneLine(message)}`)
    if (atWork.size > 0) lines.push(`  ${ended} of ${total} done`)
    const width = Math.max(columns(), COLUMNS_MIN)
    const text = lines.map((line) => (line.length < width ? line : `${line.slice(0, width - 2)}…`)) // a wrapped line cannot be redrawn
    write(`${shown > 0 ? `${UP(shown)}${CLEAR_BELOW}` : ''}${above}${text.map((line) => `${line}\n`).join('')}`)
    shown = text.length
  }

  return {
    working(key, message) {
      atWork.set(key, message)
      draw()
    },
    ended(result) {
      atWork.delete(result.key)
      ended++
      draw(`${endLine(result)}\n`)
    },
  }
}

const COLUMNS_MIN = 20
const UP = (lines: number) => `\u001b[${lines}A`
const CLEAR_BELOW = '\u001b[0J'

const SIGNS: Record<ClaimResult['is'], string> = {
  done: '',
  nothing: '',
  failed: 'FAILED: ',
  unfinished: 'unfinished: ',
  untouched: 'not begun: ',
}

export const endLine = ({ key, is, message }: ClaimResult): string => `${key}: ${SIGNS[is]}${oneLine(message)}`

/** Messages of drivers and servers may contain control characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are removed
export const oneLine = (text: string): string => text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').trim()
