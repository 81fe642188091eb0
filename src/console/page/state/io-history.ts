// IO per claim since a component began to show it: one sample per usage response, in a bounded ring.
import { useEffect, useRef } from 'preact/hooks'
import type { DfClaim } from '../../protocol.ts'
import { usageByClaim } from './data.ts'
import { usePolled } from './polled.ts'

/** Bounds the samples; older ones are dropped. Ten minutes at one sample every 5 s. */
const SAMPLES_MAX = 120
const REFRESH_INTERVAL_MS = 5_000

interface IoHistory {
  readonly timesMs: readonly number[]
  /** By namespace/name; null where a sample has no value. */
  valuesOf(claim: string): (number | null)[]
}

interface Sample {
  readonly timeMs: number
  readonly values: ReadonlyMap<string, number>
}

/** Reads the usage every few seconds while the component is mounted. */
export function useIoHistory(read: (usage: DfClaim) => number | undefined): IoHistory {
  const samples = useRef<Sample[]>([])
  const { value, receivedMs } = usePolled(usageByClaim)
  useEffect(() => {
    const timer = setInterval(() => usageByClaim.refresh(), REFRESH_INTERVAL_MS)
    return () => clearInterval(timer)
  }, [])
  if (value && receivedMs !== undefined && samples.current.at(-1)?.timeMs !== receivedMs) {
    const values = new Map<string, number>()
    for (const usage of value.items) {
      const amount = read(usage)
      if (amount !== undefined) values.set(`${usage.namespace}/${usage.claim}`, amount)
    }
    samples.current = [...samples.current, { timeMs: receivedMs, values }].slice(-SAMPLES_MAX)
  }
  return {
    timesMs: samples.current.map(({ timeMs }) => timeMs),
    valuesOf: (claim) => samples.current.map(({ values }) => values.get(claim) ?? null),
  }
}
