// Runs the plans of this folder, each of which failed before a bug was fixed.
// `npm run sim -- --plan src/sim/regressions/<file>` prints the run of a plan.
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { runPlan } from '../engine/run-plan.ts'
import { catchCrashes } from '../engine/run-wrappers.ts'
import { fileNameOf, readRegressions } from '../plan/plan-file.ts'
import { formatTimeline } from '../trace/timeline.ts'

const regressions = await readRegressions(fileURLToPath(new URL('.', import.meta.url)))

describe('regressions', () => {
  it('SYS-14 are named after their rule and seed, and contain a sentence that describes the bug', () => {
    expect(regressions.length).toBeGreaterThanOrEqual(3)
    for (const { file, description, rule, plan } of regressions) {
      expect(description, file).toMatch(/ /)
      expect(file).toBe(fileNameOf(rule, plan))
    }
  })

  for (const { file, description, plan } of regressions)
    it(`SYS-14 stay fixed: ${description} (${file})`, async () => {
      const run = await catchCrashes(runPlan)(plan)
      expect(run.violations, formatTimeline(run)).toEqual([])
    })
})
