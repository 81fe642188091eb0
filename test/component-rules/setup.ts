// Setup file of all vitest projects. It fails a test in which a component sent a request that its rules do not grant, and
// writes the permissions that the components of the test file used to the directory RULE_USAGE_DIR.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterAll, afterEach, beforeAll, type RunnerTestFile } from 'vitest'
import { ruleUsage } from '../../src/apiserver/rbac/rule-usage.fixture.ts'
import { ROOT, usageFile } from './suites.ts'

// A worker shares its modules between test files, so the records of the previous file are cleared.
beforeAll(() => {
  ruleUsage.used.clear()
  ruleUsage.denied.clear()
})

afterEach(() => {
  const deniedRequests = [...ruleUsage.denied]
  ruleUsage.denied.clear()
  if (deniedRequests.length > 0)
    throw new Error(`src/apiserver/rbac/component-rules.ts does not grant: ${deniedRequests.join(', ')}`)
})

// biome-ignore lint/correctness/noEmptyPattern: vitest requires a destructured first parameter
afterAll(({}, suite) => {
  const { RULE_USAGE_DIR: dir } = process.env
  if (!dir) return
  const { filepath, projectName } = suite as RunnerTestFile
  mkdirSync(dir, { recursive: true })
  const file = join(dir, usageFile(projectName ?? '', relative(ROOT, filepath)))
  writeFileSync(file, JSON.stringify([...ruleUsage.used].sort()))
})
