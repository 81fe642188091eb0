// Formats times as the Kubernetes types Time (whole seconds) and MicroTime.

/** 9999-12-31T23:59:59Z: RFC 3339 has years of four digits. */
const SECOND_MAX = 253_402_300_799

/** Returns at most the last second of the year 9999. Caches the result: many objects are written within the same second. */
export function timestamp(ms: number): string {
  const second = Math.min(Math.floor(ms / 1_000), SECOND_MAX)
  if (second !== lastTimestamp.second) {
    lastTimestamp = { second, text: `${new Date(second * 1_000).toISOString().slice(0, 19)}Z` }
  }
  return lastTimestamp.text
}
let lastTimestamp = { second: 0, text: '1970-01-01T00:00:00Z' }

/** Caches the time of the second, like timestamp(). */
export function microTimestamp(ms: number): string {
  const second = Math.floor(ms / 1_000)
  if (second !== lastMicroTimestamp.second)
    lastMicroTimestamp = { second, text: new Date(second * 1_000).toISOString().slice(0, -4) }
  const millisecond = Math.floor(ms) - second * 1_000
  return `${lastMicroTimestamp.text}${millisecond < 10 ? '00' : millisecond < 100 ? '0' : ''}${millisecond}000Z`
}
let lastMicroTimestamp = { second: 0, text: '1970-01-01T00:00:00.' }
