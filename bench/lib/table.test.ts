// Tests the lines of the table of figures.
import { describe, expect, it } from 'vitest'
import type { Figure } from './figure.ts'
import { aSuiteReport } from './report.fixture.ts'
import { formatTable, formatTables } from './table.ts'

describe('the table', () => {
  it('has a line for each figure of every suite, with limit, ratio, target and result', () => {
    const reports = [
      aSuiteReport('api', [
        {
          name: 'creates',
          unit: '/s',
          value: 5_728,
          limit: { value: 13_757, of: 'the echo' },
          target: { ratioMin: 0.4 },
        },
      ]),
      aSuiteReport('driver', [
        {
          name: 'create to published',
          unit: 'ms',
          value: 164,
          limit: { value: 100, of: 'the commands' },
          target: { ratioMin: 0.77 },
        },
      ]),
    ]
    expect(formatTables(reports)).toBe(
      [
        'suite   figure                 value     limit  ratio  target  pass  limit measured as',
        'api     creates              5,728/s  13,757/s   42 %  ≥ 40 %   yes  the echo',
        'driver  create to published   164 ms    100 ms   61 %  ≥ 77 %    NO  the commands',
        '',
      ].join('\n'),
    )
  })

  it('shows a published figure on its own line, with a ratio of 10 or more as a factor', () => {
    const peer = { value: 30, of: 'kubernetes#140721' }
    const figure = { name: 'bound', unit: '/s', value: 1_500, peer } as const
    const limitedFigure = { ...figure, limit: { value: 3_000, of: 'the echo' } }
    const lines = (figure: Figure) =>
      formatTable(aSuiteReport('provisioning', [figure]))
        .trim()
        .split('\n')
        .slice(1)
    const publishedRow = /^bound +1,500\/s +30\/s +50 × +published: kubernetes#140721$/
    expect(lines(limitedFigure)).toEqual([
      expect.stringMatching(/50 % +the echo$/),
      expect.stringMatching(publishedRow),
    ])
    expect(lines(figure)).toEqual([expect.stringMatching(publishedRow)])
  })

  it('shows which figures could not be measured, and why', () => {
    const report = {
      ...aSuiteReport('clients', []),
      missing: [{ name: 'creates on etcd', message: 'etcd is not installed' }],
    }
    expect(formatTable(report)).toMatch(/creates on etcd +not measured +etcd is not installed/)
  })

  it('shows an exponent with two digits and no ratio', () => {
    const limit = { value: 1, of: 'linear' }
    const figure = { name: 'growth', unit: 'exponent', value: 1.038, limit, target: { valueMax: 1.1 } } as const
    expect(formatTable(aSuiteReport('api', [figure])).split('\n')[1]).toBe(
      'growth   1.04   1.00         ≤ 1.10   yes  linear',
    )
  })
})
