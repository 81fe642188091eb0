// The setup file of the vitest project `stock`: the tests that exceptions.ts lists must fail.
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, type RunnerTestFile } from 'vitest'
import { EXCEPTIONS } from './exceptions.ts'
import { expectFailures } from './expect-failures.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

// biome-ignore lint/correctness/noEmptyPattern: vitest requires a destructured first parameter
beforeAll(({}, suite) => {
  const { filepath, tasks } = suite as RunnerTestFile
  expectFailures(relative(ROOT, filepath), tasks, EXCEPTIONS)
})
