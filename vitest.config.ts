import { configDefaults, defineConfig } from 'vitest/config'
import { RULE_USAGE_DIR } from './test/component-rules/usage-dir.ts'
import { stockSuites } from './test/stock/suites.ts'

const SHARED_WORKER_SUITES = [
  'src/{api,apiserver,base,cli,client,console,controllers,csi,diagnosis,processes,runtime,scheduler,sdk,volumes}/**/*.test.ts',
]

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
        // A worker runs many of these files, which share nothing but imported modules: a process and the imports of each file
        // would take as long as its tests.
        extends: true,
        test: { name: 'stowage', include: SHARED_WORKER_SUITES, isolate: false },
      },
      {
        // Tests with processes, disks and simulations: a process for each file.
        extends: true,
        test: {
          name: 'isolated',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'bench/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...SHARED_WORKER_SUITES],
        },
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
