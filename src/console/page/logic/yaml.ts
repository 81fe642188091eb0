// Formats an object as YAML for reading, in the block style of kubectl. Strings that could be read as another type are quoted.
// Keys keep their order.

type Value = string | number | boolean | null | undefined | readonly Value[] | { readonly [key: string]: Value }

/** A plain text that YAML reads as a string. Other texts are quoted, or are literal blocks if they have line breaks. */
const PLAIN = /^[A-Za-z_./][A-Za-z0-9_./@%+=()-]*(?:[ :][A-Za-z0-9_./@%+=()-]+)*$/
const RESERVED = /^(?:true|false|yes|no|on|off|null|~|y|n|\.inf|\.nan)$|^[-+.]?\d/i

export function formatYaml(value: unknown): string {
  return `${formatBlock(value as Value, 0).replace(/^\n/, '')}\n`
}

function formatBlock(value: Value, indent: number): string {
  if (Array.isArray(value)) return value.length === 0 ? ' []' : formatList(value as readonly Value[], indent)
  if (typeof value === 'object' && value !== null) return formatMap(value as { [key: string]: Value }, indent)
  return ` ${formatScalar(value, indent)}`
}

function formatMap(map: { readonly [key: string]: Value }, indent: number): string {
  const entries = Object.entries(map).filter(([, value]) => value !== undefined)
  if (entries.length === 0) return ' {}'
  const pad = ' '.repeat(indent)
  return entries
    .map(([key, value]) => {
      // A list has the indentation of its key, as kubectl prints it.
      const nested = Array.isArray(value) ? indent : indent + 2
      return `\n${pad}${quote(key)}:${formatBlock(value, nested)}`
    })
    .join('')
}

function formatList(list: readonly Value[], indent: number): string {
  const pad = ' '.repeat(indent)
  return list.map((item) => `\n${pad}-${formatItem(item, indent + 2)}`).join('')
}

/** The first key of a map is on the line of the dash. */
function formatItem(item: Value, indent: number): string {
  const text = formatBlock(item, indent)
  return text.startsWith('\n') ? ` ${text.slice(1 + indent)}` : text
}

function formatScalar(value: Value, indent: number): string {
  if (typeof value !== 'string') return String(value ?? 'null')
  // A text with line breaks is a literal block, unless a line needs escapes or its indentation would be unclear.
  if (/^[^\s].*\n/.test(value) && !/[^\n\u0020-\u007e\u00a0-\ud7ff]/.test(value)) {
    const pad = ' '.repeat(Math.max(2, indent))
    const end = /\n(\n*)$/.exec(value)
    const mark = end ? (end[1] === '' ? '|' : '|+') : '|-'
    const body = value.replace(/\n$/, '')
    return `${mark}\n${body
      .split('\n')
      .map((line) => (line === '' ? '' : pad + line))
      .join('\n')}`
  }
  return quote(value)
}

const quote = (text: string): string =>
  PLAIN.test(text) && !RESERVED.test(text) && !text.endsWith(':') ? text : JSON.stringify(text)
