// Runs the same suites with this build and with another commit, in turns, and returns the ratio of each figure. Each build runs
// its own benchmarks, so compare only figures whose measurement has not changed.
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildCommit } from './build-commit.ts'
import { type ComparedFigure, compareReports, type Round } from './compare-reports.ts'
import type { Report } from './report.ts'
import { alignColumns } from './table.ts'
import { formatAmount } from './text.ts'

export interface AgainstOptions {
  readonly commit: string
  readonly rounds: number
  /** Arguments for the benchmarks of both builds: suites, parts and flags. */
  readonly args: readonly string[]
  readonly root: string
  /** The benchmarks of this build. */
  readonly program: string
  log(line: string): void
}

export interface AgainstResult {
  readonly figures: readonly ComparedFigure[]
  /** The table, and a summary of what was compared. */
  readonly text: string
}

export async function runAgainst(options: AgainstOptions): Promise<AgainstResult> {
  const { commit, rounds: roundCount, args, root, program, log } = options
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-bench-against-')))
  try {
    log(`Building ${commit}`)
    const built = await buildCommit(commit, { root, dir })
    const rounds: Round[] = []
    for (let round = 0; round < roundCount; round++) {
      const measure = (side: string, path: string) => {
        log(`Round ${round + 1} of ${roundCount}: ${side}`)
        return runBenchmarks(path, args, join(dir, `${side}-${round}.json`))
      }
      // The order alternates: a machine that becomes slower or faster then favors neither build.
      if (round % 2 === 0) {
        const before = await measure('before', built.program)
        rounds.push({ before, after: await measure('after', program) })
      } else {
        const after = await measure('after', program)
        rounds.push({ before: await measure('before', built.program), after })
      }
    }
    const figures = compareReports(rounds)
    const summary = `before: ${built.hash.slice(0, 12)} ${built.subject}\nafter: this build\n${roundCount === 1 ? '1 round' : `${roundCount} rounds in turns`}\n`
    return { figures, text: `${formatComparison(figures)}\n${summary}` }
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

/** Runs the benchmarks as a child process and returns their report. Ignores the exit code, because missed targets change it. */
async function runBenchmarks(program: string, args: readonly string[], file: string): Promise<Report> {
  const child = spawn(process.execPath, [program, ...args, '--json', file], { stdio: ['ignore', 'ignore', 'inherit'] })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', resolve)
  })
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Report
  } catch (error) {
    throw new Error(`${program} exited with code ${code} and wrote no figures`, { cause: error })
  }
}

export const formatComparison = (figures: readonly ComparedFigure[]): string =>
  alignColumns([
    ['suite', 'figure', 'before', 'after', 'ratio', 'rounds', 'change'],
    ...figures.map(({ suite, name, unit, before, after, ratio, ratioMin, ratioMax, change }) => [
      suite,
      name,
      formatAmount(before, unit),
      formatAmount(after, unit),
      ratio.toFixed(2),
      `${ratioMin.toFixed(2)}–${ratioMax.toFixed(2)}`,
      change,
    ]),
  ])
