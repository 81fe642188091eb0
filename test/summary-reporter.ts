// A vitest reporter that ends the run with one line for CI: "N passed, N failed, N skipped". A file that fails without a failed
// test, for example in a hook, counts as one failure.
import type { Reporter, TestModule } from 'vitest/node'

export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    let brokenFiles = 0
    for (const module of modules) {
      for (const test of module.children.allTests()) counts[test.result().state]++
      if (module.state() === 'failed' && [...module.children.allTests('failed')].length === 0) brokenFiles++
    }
    console.log(`\n${counts.passed} passed, ${counts.failed + brokenFiles} failed, ${counts.skipped} skipped`)
  }
}
