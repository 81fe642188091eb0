// Skips strings and whitespace in a JSON text.

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Returns the offset after a string's closing quote, or the text's length if the string is not closed. */
export function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) return i + 1
    if (code === BACKSLASH) i++
  }
  return text.length
}

export function skipWhitespace(text: string, start: number): number {
  let i = start
  while (isWhitespace(text.charCodeAt(i))) i++
  return i
}

const isWhitespace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
