// Keeps hourly samples of the used bytes of volumes in memory, and computes from them how fast a volume grows.

export interface UsageHistory {
  /** Adds a sample, and returns the growth since the oldest one in bytes per day: undefined within the first hour. */
  add(volume: string, sample: UsageSample): number | undefined
}

export interface UsageSample {
  /** Monotonic time. */
  readonly timeMs: number
  readonly usedBytes: number
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
export const USAGE_SAMPLES_MAX = 168 // a week of hourly samples of a volume; the oldest one is dropped
export const USAGE_HISTORIES_MAX = 1_000 // beyond this the history of the least recently sampled volume is dropped

export function createUsageHistory(): UsageHistory {
  /** The samples of each volume, at least an hour apart. The least recently sampled volume is first. */
  const samplesByVolume = new Map<string, UsageSample[]>()
  return {
    add(volume, sample) {
      const samples = samplesByVolume.get(volume) ?? []
      samplesByVolume.delete(volume)
      samplesByVolume.set(volume, samples)
      if (samplesByVolume.size > USAGE_HISTORIES_MAX) samplesByVolume.delete(samplesByVolume.keys().next().value!)
      const last = samples.at(-1)
      if (!last || sample.timeMs - last.timeMs >= HOUR_MS) samples.push(sample)
      if (samples.length > USAGE_SAMPLES_MAX) samples.shift()
      const first = samples[0]!
      const durationMs = sample.timeMs - first.timeMs
      return durationMs < HOUR_MS ? undefined : ((sample.usedBytes - first.usedBytes) / durationMs) * DAY_MS
    },
  }
}
