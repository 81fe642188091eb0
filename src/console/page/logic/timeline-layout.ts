// Lays out a timeline as a Gantt chart: a lane per actor, and an axis on which long pauses are shortened, so that the second
// in which a claim was provisioned and the minute in which it was expanded a week later are both readable.

interface TimedEntry {
  readonly time: string
  readonly durationMs?: number
  readonly type: string
  readonly action: string
  readonly component?: string
  readonly user?: string
  readonly manager?: string
  readonly result?: string
  readonly message?: string
}

export interface Bar<E> {
  readonly entry: E
  /** Between 0 and 1. */
  readonly start: number
  readonly end: number
}

interface Lane<E> {
  readonly name: string
  readonly bars: readonly Bar<E>[]
}

interface ShortenedPause {
  /** Where the pause is drawn, between 0 and 1. */
  readonly start: number
  readonly end: number
  readonly durationMs: number
}

interface TimelineLayout<E> {
  readonly lanes: readonly Lane<E>[]
  readonly shortenedPauses: readonly ShortenedPause[]
  readonly startMs: number
  readonly endMs: number
  /** Returns the position of a time on the axis. */
  positionOf(timeMs: number): number
}

/** The share of the axis that one shortened pause occupies. */
const PAUSE_SHARE = 0.04
/** A pause is shortened if it has at least PAUSE_MS_MIN, and at least this multiple of the remaining time. */
const PAUSE_FACTOR = 0.5
const PAUSE_MS_MIN = 2_000
const PAUSES_MAX = 6

export function layoutTimeline<E extends TimedEntry>(
  entries: readonly E[],
  options: { readonly otherTimes?: readonly number[]; nameOf(entry: E): string },
): TimelineLayout<E> | undefined {
  if (entries.length === 0) return undefined
  const spans = entries.map((entry) => {
    const startMs = Date.parse(entry.time)
    return { entry, startMs, endMs: startMs + (entry.durationMs ?? 0) }
  })
  const axis = createAxis([...spans, ...(options.otherTimes ?? []).map((time) => ({ startMs: time, endMs: time }))])
  const lanes = new Map<string, Bar<E>[]>()
  for (const { entry, startMs, endMs } of spans) {
    const name = options.nameOf(entry)
    const bars = lanes.get(name) ?? []
    bars.push({ entry, start: axis.positionOf(startMs), end: axis.positionOf(endMs) })
    lanes.set(name, bars)
  }
  return { ...axis, lanes: [...lanes].map(([name, bars]) => ({ name, bars })) }
}

interface Span {
  readonly startMs: number
  readonly endMs: number
}

function createAxis(spans: readonly Span[]): Omit<TimelineLayout<never>, 'lanes'> {
  const sorted = [...spans].sort((a, b) => a.startMs - b.startMs)
  const startMs = sorted[0]!.startMs
  const endMs = Math.max(...sorted.map((span) => span.endMs))
  const pauses = findPauses(sorted)
  const shortened = choosePauses(pauses, endMs - startMs)
  const shortenedMs = shortened.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0)
  const activeMs = Math.max(1, endMs - startMs - shortenedMs)
  const activeShare = 1 - shortened.length * PAUSE_SHARE
  const positionOf = (timeMs: number): number => {
    let position = 0
    let doneMs = startMs
    for (const pause of shortened) {
      if (timeMs <= pause.startMs) break
      position += ((pause.startMs - doneMs) / activeMs) * activeShare
      if (timeMs < pause.endMs)
        return position + PAUSE_SHARE * ((timeMs - pause.startMs) / (pause.endMs - pause.startMs))
      position += PAUSE_SHARE
      doneMs = pause.endMs
    }
    return Math.min(1, position + ((timeMs - doneMs) / activeMs) * activeShare)
  }
  const shortenedPauses = shortened.map((pause) => ({
    start: positionOf(pause.startMs),
    end: positionOf(pause.endMs),
    durationMs: pause.endMs - pause.startMs,
  }))
  return { shortenedPauses, startMs, endMs, positionOf }
}

function findPauses(sorted: readonly Span[]): Span[] {
  const pauses: Span[] = []
  let busyUntilMs = sorted[0]!.endMs
  for (const { startMs, endMs } of sorted) {
    if (startMs > busyUntilMs) pauses.push({ startMs: busyUntilMs, endMs: startMs })
    busyUntilMs = Math.max(busyUntilMs, endMs)
  }
  return pauses
}

/** Selects the longest pauses while each is long compared with the remaining time. Returns them in order of time. */
function choosePauses(pauses: readonly Span[], totalMs: number): Span[] {
  const chosen: Span[] = []
  let restMs = totalMs
  for (const pause of [...pauses].sort((a, b) => b.endMs - b.startMs - (a.endMs - a.startMs))) {
    const lengthMs = pause.endMs - pause.startMs
    if (chosen.length === PAUSES_MAX || lengthMs < PAUSE_MS_MIN || lengthMs < (restMs - lengthMs) * PAUSE_FACTOR) break
    chosen.push(pause)
    restMs -= lengthMs
  }
  return chosen.sort((a, b) => a.startMs - b.startMs)
}
