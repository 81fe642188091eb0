// Tests which parts runSuites runs, and what it reports of a part that fails or that the time does not suffice for.
import { access } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import type { Figure } from './figure.ts'
import { type RunOptions, runSuites } from './run-suites.ts'
import type { MeasurePart, PartOptions } from './suite.ts'

const figure = (name: string): Figure => ({ name, unit: '/s', value: 1 })

function run(parts: Record<string, MeasurePart>, options: Partial<RunOptions> = {}) {
  const lines: string[] = []
  const runOptions = {
    only: [],
    isLong: false,
    nowMs: () => 0,
    log: (line: string) => void lines.push(line),
    ...options,
  }
  return runSuites({ suites: { api: { parts } }, ...runOptions }).then((result) => ({ ...result, lines }))
}

describe('running suites', () => {
  it('collects figures, notes and missing figures of the parts in order', async () => {
    const { suites, hasFailed } = await run({
      creates: async ({ note }) => {
        note('A note.')
        return [figure('a')]
      },
      etcd: async ({ reportMissing }) => {
        reportMissing('b', 'etcd is not installed')
        return []
      },
    })
    expect(hasFailed).toBe(false)
    expect(suites[0]).toMatchObject({
      suite: 'api',
      figures: [figure('a')],
      notes: ['A note.'],
      missing: [{ name: 'b', message: 'etcd is not installed' }],
    })
  })

  it('runs only the selected parts', async () => {
    const parts = { creates: async () => [figure('a')], reads: async () => [figure('b')] }
    const { suites } = await run(parts, { only: ['reads'] })
    expect(suites[0]?.figures).toEqual([figure('b')])
  })

  it('keeps the other figures when a part fails, and reports the cause', async () => {
    const { suites, hasFailed } = await run({
      creates: async () => {
        throw new Error('no port')
      },
      reads: async () => [figure('b')],
    })
    expect(hasFailed).toBe(true)
    expect(suites[0]?.figures).toEqual([figure('b')])
    expect(suites[0]?.missing).toEqual([{ name: 'creates', message: 'failed: no port' }])
  })

  it('logs the time left, and skips a part if less time is left than a part may take', async () => {
    let nowMs = 0
    const partTaking =
      (seconds: number): MeasurePart =>
      async ({ progress }) => {
        nowMs += seconds * 1_000
        progress('half way')
        return [figure(`${seconds}`)]
      }
    const parts = { creates: partTaking(90), reads: partTaking(475), watches: partTaking(1) }
    const { suites, lines } = await run(parts, { nowMs: () => nowMs, budgetSeconds: 600 })
    expect(lines).toEqual([
      '[10:00 left] api creates: started',
      '[8:30 left] api creates: half way',
      '[8:30 left] api reads: started',
      '[0:35 left] api reads: half way',
    ])
    expect(suites[0]?.figures.map(({ name }) => name)).toEqual(['90', '475'])
    expect(suites[0]?.parts).toEqual([
      { part: 'creates', seconds: 90 },
      { part: 'reads', seconds: 475 },
    ])
    expect(suites[0]?.missing[0]).toMatchObject({
      name: 'watches',
      message: expect.stringContaining('not enough time'),
    })
  })

  it('runs every part in its own directory, and removes the directory even after a failure', async () => {
    const dirs: string[] = []
    const fail = async ({ dir }: PartOptions) => {
      dirs.push(dir)
      await access(dir)
      throw new Error('failed')
    }
    await run({ one: fail, other: fail })
    expect(new Set(dirs).size).toBe(2)
    for (const dir of dirs) await expect(access(dir)).rejects.toThrow()
  })
})
