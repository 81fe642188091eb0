import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'bench/**/*.test.ts'],
    setupFiles: ['test/fast-check-setup.ts'],
    reporters: ['default', './test/summary-reporter.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2, // half of the suite waits for other processes; one worker would leave a core idle
  },
})
