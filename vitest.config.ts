import { defineConfig } from 'vitest/config'
import { RULE_USAGE_DIR } from './test/component-rules/usage-dir.ts'
import { stockSuites } from './test/stock/suites.ts'

export default defineConfig({
  test: {
    setupFiles: ['test/fast-check-setup.ts', 'test/component-rules/setup.ts'],
    env: { RULE_USAGE_DIR },
    globalSetup: ['test/component-rules/usage-dir.ts'],
    reporters: ['default', './test/summary-reporter.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2, // half of the suite waits for other processes; one worker would leave a core idle
    projects: [
      {
        extends: true,
        test: { name: 'stowage', include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'bench/**/*.test.ts'] },
      },
      {
        // The suites of the controllers again, on a server that answers as a stock API server does.
        extends: true,
        test: {
          name: 'stock',
          include: stockSuites(),
          setupFiles: ['test/stock/setup.ts'],
          env: { SERVER_ANSWERS: 'stock' },
        },
      },
      {
        // After all other tests: fails on a rule of a component that no test used.
        extends: true,
        test: {
          name: 'rules',
          include: ['test/component-rules/used-rules.check.ts'],
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
