// Marks the tests of a file that exceptions.ts lists as expected to fail: vitest then reports those that pass as failures.
import type { RunnerTask, RunnerTestCase } from 'vitest'
import type { Exception } from './exceptions.ts'

/** Throws if an exception names no test of the file. */
export function expectFailures(file: string, tasks: readonly RunnerTask[], exceptions: readonly Exception[]): void {
  const tests = tasks.flatMap((task) => listTests(task, ''))
  for (const exception of exceptions.filter((candidate) => candidate.file === file))
    for (const name of exception.tests) {
      const exceptedTests = tests.filter(({ fullName }) => fullName === name || fullName.startsWith(`${name} > `))
      if (exceptedTests.length === 0)
        throw new Error(`test/stock/exceptions.ts: ${file} has no test or suite "${name}"`)
      for (const { test } of exceptedTests) test.fails = true
    }
}

/** Returns the tests of a task with their names, which include the suites between the file and the test. */
function listTests(task: RunnerTask, prefix: string): { readonly fullName: string; readonly test: RunnerTestCase }[] {
  const fullName = prefix + task.name
  if (task.type === 'test') return [{ fullName, test: task }]
  return task.tasks.flatMap((child) => listTests(child, `${fullName} > `))
}
