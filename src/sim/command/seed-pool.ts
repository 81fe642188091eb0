// Runs many seeds at once, one per worker, and replaces workers that crash.
import { addResult, createTotals, type SeedResult, type Totals } from './report.ts'

export interface SeedWorker {
  /** Rejects if the worker crashes or exceeds its time. */
  run(seed: number): Promise<SeedResult>
  stop(): void
}

export interface PoolOptions {
  readonly workers: number
  readonly startWorker: () => SeedWorker
  /** Returns the next seed, or undefined to end the pool after the seeds in progress. */
  readonly nextSeed: () => number | undefined
  readonly progress?: (totals: Totals) => void
}

export async function runSeeds({ workers, startWorker, nextSeed, progress }: PoolOptions): Promise<Totals> {
  const totals = createTotals()

  async function runWorker(): Promise<void> {
    let worker: SeedWorker | undefined
    for (let seed = nextSeed(); seed !== undefined; seed = nextSeed()) {
      worker ??= startWorker()
      try {
        addResult(totals, await worker.run(seed))
      } catch (error) {
        addResult(totals, crashResult(seed, error))
        worker.stop()
        worker = undefined
      }
      progress?.(totals)
    }
    worker?.stop()
  }

  await Promise.all(Array.from({ length: workers }, runWorker))
  return totals
}

/** The rule of a seed whose worker crashed or exceeded its time. */
export const NO_RESULT = 'no result'

function crashResult(seed: number, error: unknown): SeedResult {
  const text = error instanceof Error ? error.message : String(error)
  return { seed, virtualMs: 0, operations: {}, faults: {}, violations: [{ atMs: 0, rule: NO_RESULT, text }] }
}
