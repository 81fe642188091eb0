import { defineConfig } from 'vitest/config'
import { stockSuites } from './test/stock/suites.ts'

export default defineConfig({
  test: {
    setupFiles: ['test/fast-check-setup.ts'],
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
    ],
  },
})
