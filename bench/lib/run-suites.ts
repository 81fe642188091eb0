// Runs the parts of suites one after the other, each in its own directory, and logs the progress with the remaining time,
// or with the elapsed time if there is no time limit. A failed part does not affect the figures of other parts.
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Figure, MissingFigure } from './figure.ts'
import type { PartTime, SuiteReport } from './report.ts'
import type { MeasurePart, OtherBuild, PartOptions, Suite } from './suite.ts'
import { minutesText } from './text.ts'

export interface RunOptions {
  readonly suites: Readonly<Record<string, Suite>>
  /** Names of the parts to run; empty means all. */
  readonly only: readonly string[]
  /** Parent of the scratch directories, whose disk is measured. Default: the system's temporary directory. */
  readonly dir?: string | undefined
  readonly profileDir?: string | undefined
  readonly isLong: boolean
  readonly beside?: OtherBuild | undefined
  /** A part that would probably not finish in time is skipped. */
  readonly budgetSeconds?: number | undefined
  nowMs(): number
  log(line: string): void
}

export interface RunResult {
  readonly suites: readonly SuiteReport[]
  readonly hasFailed: boolean
}

/** Upper estimate of the time of a part. */
const PART_SECONDS_MAX = 40

export async function runSuites(options: RunOptions): Promise<RunResult> {
  const { suites, only, budgetSeconds, nowMs, log } = options
  const startMs = nowMs()
  const elapsedSeconds = () => (nowMs() - startMs) / 1000
  const clockText = () =>
    budgetSeconds === undefined
      ? minutesText(elapsedSeconds())
      : `${minutesText(budgetSeconds - elapsedSeconds())} left`
  const reports: SuiteReport[] = []
  let hasFailed = false

  for (const [suite, { parts }] of Object.entries(suites)) {
    const results = {
      figures: [] as Figure[],
      missing: [] as MissingFigure[],
      notes: [] as string[],
      parts: [] as PartTime[],
    }
    for (const [part, measure] of Object.entries(parts)) {
      if (only.length > 0 && !only.includes(part)) continue
      const reportMissing = (name: string, message: string) => void results.missing.push({ name, message })
      if (budgetSeconds !== undefined && elapsedSeconds() > budgetSeconds - PART_SECONDS_MAX) {
        reportMissing(part, `not enough time left; run it alone: npm run bench -- ${suite} --only ${part}`)
        continue
      }
      const startSeconds = elapsedSeconds()
      const progress = (text: string) => log(`[${clockText()}] ${suite} ${part}: ${text}`)
      progress('started')
      try {
        const note = (text: string) => void results.notes.push(text)
        results.figures.push(
          ...(await measureInScratchDir(options, { suite, part, measure, progress, note, reportMissing })),
        )
      } catch (error) {
        hasFailed = true
        reportMissing(part, `failed: ${error instanceof Error ? error.message : String(error)}`)
      }
      results.parts.push({ part, seconds: elapsedSeconds() - startSeconds })
    }
    if (results.parts.length + results.missing.length > 0) reports.push({ suite, ...results })
  }
  return { suites: reports, hasFailed }
}

type NamedPart = { readonly suite: string; readonly part: string; readonly measure: MeasurePart }

async function measureInScratchDir(
  { dir: parent = tmpdir(), profileDir, isLong, beside }: RunOptions,
  { suite, part, measure, ...callbacks }: NamedPart & Pick<PartOptions, 'progress' | 'note' | 'reportMissing'>,
): Promise<Figure[]> {
  const dir = await realpath(await mkdtemp(join(parent, 'stowage-bench-')))
  const partProfileDir = profileDir && join(profileDir, suite, part)
  try {
    if (partProfileDir) await mkdir(partProfileDir, { recursive: true })
    return await measure({
      dir,
      isLong,
      ...callbacks,
      ...(beside ? { beside } : {}),
      ...(partProfileDir ? { profileDir: partProfileDir } : {}),
    })
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}
