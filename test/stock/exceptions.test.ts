// Tests the list of exceptions and the selection of the suites that run on a server with a stock API server's responses.
import { describe, expect, it, type RunnerTask } from 'vitest'
import { EXCEPTIONS } from './exceptions.ts'
import { expectFailures } from './expect-failures.ts'
import { stockSuites } from './suites.ts'

describe('the vitest project stock', () => {
  it('SYS-29 runs suites of the controllers, the scheduler, the node agent and the runtime', () => {
    const folders = new Set(stockSuites().map((file) => file.split('/').slice(0, -1).join('/')))
    for (const folder of [
      'attaching',
      'binding',
      'capacity',
      'ephemeral',
      'expanding',
      'garbage-collection',
      'modifying',
    ])
      expect(folders).toContain(`src/controllers/${folder}`)
    for (const folder of ['namespaces', 'node-lifecycle', 'protection', 'provisioning', 'provisioning/csi', 'quota'])
      expect(folders).toContain(`src/controllers/${folder}`)
    for (const folder of ['src/scheduler', 'src/nodeagent', 'src/runtime']) expect(folders).toContain(folder)
  })

  it('has a reason for each exception, in a file that it runs', () => {
    const suites = stockSuites()
    for (const { file, message, tests } of EXCEPTIONS) {
      expect(suites).toContain(file)
      expect(message).toMatch(/\.$/)
      expect(tests.length).toBeGreaterThan(0)
    }
    const names = EXCEPTIONS.flatMap(({ file, tests }) => tests.map((name) => `${file} > ${name}`))
    expect(new Set(names).size).toBe(names.length)
  })

  it('expects the listed tests and the tests of listed suites to fail', () => {
    const tasks = [
      suite('binding', [test('binds'), suite('a class', [test('waits'), test('binds')])]),
      suite('binding of many', [test('binds')]),
    ]
    const names = ['binding > binds', 'binding > a class', 'binding of many > binds']
    expectFailures('a.test.ts', tasks, [exceptionOf('a.test.ts', names.slice(0, 2)), exceptionOf('b.test.ts', names)])
    expect(failingNames(tasks)).toEqual(['binding/binds', 'binding/a class/waits', 'binding/a class/binds'])
  })

  it('fails if an exception matches no test', () => {
    const tasks = [suite('binding', [test('binds')])]
    for (const name of ['binding > deletes', 'binds', 'bind'])
      expect(() => expectFailures('a.test.ts', tasks, [exceptionOf('a.test.ts', [name])])).toThrow(
        `a.test.ts has no test or suite "${name}"`,
      )
  })
})

const exceptionOf = (file: string, tests: readonly string[]) => ({ file, message: 'It needs a Stowage server.', tests })
const test = (name: string) => ({ type: 'test', name }) as RunnerTask
const suite = (name: string, tasks: RunnerTask[]) => ({ type: 'suite', name, tasks }) as RunnerTask

const failingNames = (tasks: readonly RunnerTask[], prefix = ''): string[] =>
  tasks.flatMap((task) => {
    if (task.type === 'suite') return failingNames(task.tasks, `${prefix}${task.name}/`)
    return task.fails ? [prefix + task.name] : []
  })
