// Tests the figures that are written into the docs: their tables, charts and notes.
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { suiteBlock, summaryBlock, writeDocs } from './docs.ts'
import { toTotalGrowthFigure } from './growth.ts'
import { aReport, aSuiteReport } from './report.fixture.ts'

const creates = { name: 'creates', unit: '/s', value: 400, target: { valueMin: 300 } } as const
const growth = toTotalGrowthFigure('creates', {
  of: 'claims',
  points: [
    { size: 1, ms: 1 },
    { size: 10, ms: 11 },
  ],
})
const ORDER = ['api', 'quota']

describe('the figures in the docs', () => {
  let docs = ''
  beforeEach(async () => {
    docs = await mkdtemp(join(tmpdir(), 'stowage-docs-'))
    const blocks = ['all', ...ORDER].map((name) => `<!-- bench:${name} -->\n<!-- bench:end -->\n`)
    await writeFile(join(docs, 'performance.md'), `Written by hand.\n${blocks.join('\n')}`)
  })
  afterEach(() => rm(docs, { recursive: true }))
  const readPage = () => readFile(join(docs, 'performance.md'), 'utf8')

  it('have a table and a chart for each suite, and a line in the summary', async () => {
    await writeDocs(docs, aReport([aSuiteReport('api', [creates, growth]), aSuiteReport('quota', [creates])]), ORDER)
    const text = await readPage()
    expect(text).toMatch(/^Written by hand\.$/m)
    expect(text).toMatch(/^creates +400\/s +≥ 300\/s +yes$/m)
    expect(text).toContain('![Figures of quota as a chart](performance/quota.svg)')
    expect(text).toContain('| [api](#api) | 2 of 2 | 1.04 | 0:12 |')
    expect(text).toContain('| all | 3 of 3 | | 0:24 |')
    expect(await readFile(join(docs, 'performance', 'api.svg'), 'utf8')).toContain('<svg')
  })

  it('replace only the earlier figures of the same suite', async () => {
    await writeDocs(docs, aReport([aSuiteReport('api', [creates]), aSuiteReport('quota', [creates])]), ORDER)
    await writeDocs(docs, aReport([aSuiteReport('quota', [{ ...creates, value: 200 }])]), ORDER)
    const text = await readPage()
    expect(text.indexOf('400/s')).toBeLessThan(text.indexOf('200/s'))
    expect(text).toContain('| [api](#api) | 1 of 1 |')
    expect(text).toContain('| [quota](#quota) | 0 of 1 |')
  })

  it('have a place in docs/reference/performance.md for every suite', async () => {
    const pageUrl = new URL('../../docs/reference/performance.md', import.meta.url)
    await cp(pageUrl, join(docs, 'performance.md'))
    await mkdir(join(docs, 'performance'))
    const names = [
      ...(await readFile(new URL('../main.ts', import.meta.url), 'utf8')).matchAll(/^ {2}(\w+): \w+Suite,$/gm),
    ]
    const suites = names.map(([, name]) => aSuiteReport(name!, [creates]))
    expect(suites.length).toBeGreaterThan(5)
    await writeDocs(
      docs,
      aReport(suites),
      suites.map(({ suite }) => suite),
    )
    expect(await readPage()).toContain('| all | ')
  })

  it('include each note once, below the table', () => {
    const block = suiteBlock({ ...aSuiteReport('api', [creates]), notes: ['A note.', 'A note.'] })
    expect(block.split('A note.')).toHaveLength(2)
  })

  it('name the machine on which they were measured', () => {
    expect(summaryBlock(aReport([]))).toContain('2 cores (a processor), Linux 6, node v20.20.0')
  })
})
