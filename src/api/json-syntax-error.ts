// Describes the first syntax error of an invalid JSON text and its position. The messages of JSON.parse are not used, because
// they differ between Node.js versions and quote the body, which may contain a secret.
import { endOfString, skipWhitespace } from './json-text.ts'

export function describeSyntaxError(text: string): string {
  const openBrackets: ('{' | '[')[] = []
  let expectation: Expectation = 'a value'
  for (let i = skipWhitespace(text, 0); ; i = skipWhitespace(text, i)) {
    const character = text[i]
    if (expectation === 'the end of the text' && character === undefined) return 'unknown position'
    if (
      character === '"' &&
      expectation !== "':'" &&
      expectation !== 'the end of the text' &&
      !expectation.startsWith("','")
    ) {
      const end = endOfString(text, i)
      const error = findStringError(text.slice(i + 1, end - 1))
      if (error) return `${error.reason} at ${formatPosition(text, i + 1 + error.offset)}`
      if (text[end - 1] !== '"' || end - i < 2) return `unterminated string that starts at ${formatPosition(text, i)}`
      i = end
      expectation = expectation.startsWith('a key') ? "':'" : expectedAfterValue(openBrackets)
    } else if (expectation.startsWith('a value') && (character === '{' || character === '[')) {
      openBrackets.push(character)
      i += 1
      expectation = character === '{' ? "a key or '}'" : "a value or ']'"
    } else if (expectation.startsWith('a value') && scalarLength(text, i) > 0) {
      i += scalarLength(text, i)
      expectation = expectedAfterValue(openBrackets)
    } else if (
      character !== undefined &&
      (character === '}' || character === ']') &&
      expectation.endsWith(`'${character}'`)
    ) {
      openBrackets.pop()
      i += 1
      expectation = expectedAfterValue(openBrackets)
    } else if (character === ',' && expectation.startsWith("','")) {
      i += 1
      expectation = openBrackets.at(-1) === '{' ? 'a key' : 'a value'
    } else if (character === ':' && expectation === "':'") {
      i += 1
      expectation = 'a value'
    } else {
      return `expected ${expectation} but found ${character === undefined ? 'the end of the text' : JSON.stringify(character)} at ${formatPosition(text, i)}`
    }
  }
}

type Expectation =
  | 'a value'
  | "a value or ']'"
  | 'a key'
  | "a key or '}'"
  | "':'"
  | "',' or '}'"
  | "',' or ']'"
  | 'the end of the text'

function expectedAfterValue(openBrackets: readonly ('{' | '[')[]): Expectation {
  if (openBrackets.length === 0) return 'the end of the text'
  return openBrackets.at(-1) === '{' ? "',' or '}'" : "',' or ']'"
}

function findStringError(content: string): { offset: number; reason: string } | undefined {
  for (const { index, 0: character } of content.matchAll(/[^ -\uffff]|\\(u[0-9a-fA-F]{4}|["\\/bfnrt])?/g)) {
    if (character === '\\') return { offset: index, reason: 'invalid escape sequence' }
    if (character.length === 1) return { offset: index, reason: 'unescaped control character' }
  }
  return undefined
}

function scalarLength(text: string, start: number): number {
  const scalar = /true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y
  scalar.lastIndex = start
  return scalar.exec(text)?.[0].length ?? 0
}

export function formatPosition(text: string, offset: number): string {
  const precedingText = text.slice(0, offset)
  const line = precedingText.split('\n').length
  return `line ${line}, column ${offset - precedingText.lastIndexOf('\n')} (offset ${offset})`
}
