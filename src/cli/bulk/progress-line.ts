// The contract of every progress display, and the line that a claim ends with.
import type { ObjectKey } from '../../client/index.ts'
import type { ClaimResult } from './results.ts'

export interface Progress {
  working(key: ObjectKey, message: string): void
  ended(result: ClaimResult): void
  /** Leaves the cursor below the last line. */
  finish(): void
}

export interface Terminal {
  write(text: string): void
  /** Read for every draw: windows change their size. */
  columns(): number
}

const PREFIXES: Record<ClaimResult['is'], string> = {
  done: '',
  nothing: '',
  failed: 'FAILED: ',
  unfinished: 'unfinished: ',
  untouched: 'not begun: ',
}

export const endLine = ({ key, is, message }: ClaimResult): string => `${key}: ${PREFIXES[is]}${oneLine(message)}`

/** Messages of drivers and servers may contain control characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are removed
export const oneLine = (text: string): string => text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').trim()
