// Formats a log line for human readers: time, level, message, then the fields. The input is a JSON line of the log.
//   09:29:47 warn   nodes of an earlier start are not running  nodes=["node-4"]

interface LoggedError {
  readonly message?: string
  readonly stack?: string
}

/** Returns the line unchanged if it is not a JSON object. */
export function formatLogLine(line: string): string {
  const entry = parseEntry(line)
  if (!entry) return line
  const { level, time, msg, err, ...fields } = entry
  const error = (err ?? {}) as LoggedError
  const timePrefix = typeof time === 'string' ? `${new Date(time).toTimeString().slice(0, 8)} ` : ''
  const pairs = Object.entries(fields).map(([name, value]) => `${name}=${formatValue(value)}`)
  const message = [String(msg), ...(error.message ? [error.message] : [])].join(': ')
  const text = [
    `${timePrefix}${String(level).padEnd(5)}  ${message}`,
    ...(pairs.length > 0 ? [pairs.join(' ')] : []),
  ].join('  ')
  return error.stack ? `${text}\n${error.stack}\n` : `${text}\n`
}

function parseEntry(line: string): Record<string, unknown> | undefined {
  try {
    const entry: unknown = JSON.parse(line)
    return typeof entry === 'object' && entry !== null ? (entry as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** Quotes a text only if it is empty or has spaces, quotes or equals signs. */
const formatValue = (value: unknown): string =>
  typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)
