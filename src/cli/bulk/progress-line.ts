// The interface of all progress displays, and the line that they print for a finished claim.
import type { ObjectKey } from '../../client/index.ts'
import type { ClaimResult } from './results.ts'

export interface Progress {
  update(key: ObjectKey, message: string): void
  complete(result: ClaimResult): void
  /** Ends the display. */
  finish(): void
}

export interface Terminal {
  write(text: string): void
  /** Called for every draw, because a terminal can be resized. */
  columns(): number
}

const PREFIXES: Record<ClaimResult['is'], string> = {
  done: '',
  nothing: '',
  failed: 'FAILED: ',
  unfinished: 'unfinished: ',
  untouched: 'not begun: ',
}

export const formatResultLine = ({ key, is, message }: ClaimResult): string =>
  `${key}: ${PREFIXES[is]}${toSingleLine(message)}`

/** Replaces control characters with spaces. Messages of drivers and servers may contain them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to replace
export const toSingleLine = (text: string): string => text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').trim()
