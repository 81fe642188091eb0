// Formats times as the Kubernetes types Time (whole seconds) and MicroTime.

/** Caches the last result, because many objects are written within the same second. */
export function timestamp(ms: number): string {
  const second = Math.floor(ms / 1_000)
  if (second !== lastTimestamp.second) {
    lastTimestamp = { second, text: `${new Date(second * 1_000).toISOString().slice(0, 19)}Z` }
  }
  return lastTimestamp.text
}
let lastTimestamp = { second: 0, text: '1970-01-01T00:00:00Z' }

export const microTimestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 23)}000Z`
