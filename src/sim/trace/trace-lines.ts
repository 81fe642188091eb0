// Parses the lines of a trace: time, source, text, and whether the line is a user action or a fault.
import type { SimulationRun } from '../engine/run.ts'

export interface LogLine {
  readonly atMs: number
  readonly who: string
  readonly what: string
  readonly mark: 'user' | 'fault' | undefined
}

const NOTE = /^\s*([\d.]+)s (.*)$/s
const CLOCK = /^the clock of (driver \S+|\S+) (jumps .*)$/
const WHO = /^(driver [^\s:]+|[^\s:]+):? (.*)$/s
/** Slower answers are shown with their duration. */
const SLOW_MS = 1_000
/** Lines of a process that are effects of faults; its first start is not. */
const BEFALLS = /^(crashes|freezes|goes on|jumps|loses|boots|starts \((?!1\)))/

export function readLog(run: Pick<SimulationRun, 'log'>): LogLine[] {
  const lines = run.log.map(readLine).filter(({ who }) => who !== 'CHECK') // printed after the timeline
  return withAnswers(lines)
}

/** A user action has one line for its start and one for its answer: merges both into one. */
function withAnswers(lines: readonly LogLine[]): LogLine[] {
  const entries: LogLine[] = []
  const asked: { readonly at: number; readonly what: string }[] = []
  for (const line of lines) {
    const { who, what, atMs } = line
    const open = who === 'user' ? asked.findIndex((one) => what.startsWith(`${one.what}: `)) : -1
    if (open >= 0) {
      const [{ at }] = asked.splice(open, 1) as [(typeof asked)[0]]
      const tookMs = atMs - entries[at]!.atMs
      entries[at] = {
        ...entries[at]!,
        what: tookMs < SLOW_MS ? what : `${what} (after ${(tookMs / 1000).toFixed(1)} s)`,
      }
      continue
    }
    if (who === 'user') asked.push({ at: entries.length, what })
    entries.push(line)
  }
  return entries
}

function readLine(line: string): LogLine {
  const [, seconds = '0', text = line] = NOTE.exec(line) ?? []
  const [, who = '', what = text] = CLOCK.exec(text) ?? WHO.exec(text) ?? []
  const mark = who === 'user' ? who : who === 'fault' || BEFALLS.test(what) ? 'fault' : undefined
  return { atMs: Math.round(Number(seconds) * 1000), who, what, mark }
}

/** `61:02.5`: minutes, seconds and tenths of virtual time. */
export function timeText(atMs: number): string {
  const tenths = Math.round(atMs / 100)
  return `${Math.floor(tenths / 600)}:${((tenths % 600) / 10).toFixed(1).padStart(4, '0')}`
}
