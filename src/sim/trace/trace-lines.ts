// Parses the lines of a trace: time, source, text, and whether the line is a user action or a fault.
import type { SimulationRun } from '../engine/run-plan.ts'

export interface TraceLine {
  readonly atMs: number
  readonly source: string
  readonly text: string
  readonly mark: 'user' | 'fault' | undefined
}

const NOTE = /^\s*([\d.]+)s (.*)$/s
const CLOCK = /^the clock of (driver \S+|\S+) (jumps .*)$/
const SOURCE = /^(driver [^\s:]+|[^\s:]+):? (.*)$/s
/** Actions that take longer are shown with their duration. */
const SLOW_MS = 1_000
/** Lines of a process that are effects of faults; its first start is not. */
const FAULT_EFFECT = /^(crashes|freezes|continues|jumps|loses|boots|starts \((?!1\)))/

export function readTrace(run: Pick<SimulationRun, 'trace'>): TraceLine[] {
  const lines = run.trace.map(readLine).filter(({ source }) => source !== 'CHECK') // violations are printed after the timeline
  return mergeOutcomes(lines)
}

/** Merges the two lines of each user action, one for its start and one for its outcome. */
function mergeOutcomes(lines: readonly TraceLine[]): TraceLine[] {
  const mergedLines: TraceLine[] = []
  const openActions: { readonly index: number; readonly text: string }[] = []
  for (const line of lines) {
    const { source, text, atMs } = line
    const openIndex = source === 'user' ? openActions.findIndex((action) => text.startsWith(`${action.text}: `)) : -1
    if (openIndex >= 0) {
      const [{ index }] = openActions.splice(openIndex, 1) as [(typeof openActions)[0]]
      const durationMs = atMs - mergedLines[index]!.atMs
      mergedLines[index] = {
        ...mergedLines[index]!,
        text: durationMs < SLOW_MS ? text : `${text} (after ${(durationMs / 1000).toFixed(1)} s)`,
      }
      continue
    }
    if (source === 'user') openActions.push({ index: mergedLines.length, text })
    mergedLines.push(line)
  }
  return mergedLines
}

function readLine(line: string): TraceLine {
  const [, seconds = '0', note = line] = NOTE.exec(line) ?? []
  const [, source = '', text = note] = CLOCK.exec(note) ?? SOURCE.exec(note) ?? []
  const mark = source === 'user' ? source : source === 'fault' || FAULT_EFFECT.test(text) ? 'fault' : undefined
  return { atMs: Math.round(Number(seconds) * 1000), source, text, mark }
}

/** Returns minutes, seconds and tenths of virtual time: `61:02.5`. */
export function formatTime(atMs: number): string {
  const tenths = Math.round(atMs / 100)
  return `${Math.floor(tenths / 600)}:${((tenths % 600) / 10).toFixed(1).padStart(4, '0')}`
}
