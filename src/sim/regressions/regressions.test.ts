// Every plan in regressions/ failed once. `npm run sim -- --plan src/sim/whole/regressions/<file>` tells how it goes now.
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { runPlan } from '../engine/run.ts'
import { safely } from '../engine/run-safely.ts'
import { fileNameOf, readRegressions } from '../plan/plan-file.ts'
import { timelineOf } from '../trace/timeline.ts'

const regressions = await readRegressions(fileURLToPath(new URL('regressions', import.meta.url)))

describe('what the simulation once found', () => {
  it('SYS-14 is kept with the rule it broke and a sentence that says what went wrong', () => {
    for (const { file, found, rule, plan } of regressions) {
      expect(found, file).toMatch(/ /)
      expect(file).toBe(fileNameOf(rule, plan))
    }
  })

  for (const { file, found, plan } of regressions)
    it(`SYS-14 stays mended: ${found} (${file})`, async () => {
      const run = await safely(runPlan)(plan)
      expect(run.violations, timelineOf(run)).toEqual([])
    })
})
