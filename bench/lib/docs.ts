// Writes figures to docs/reference/performance.md, which has a block for each suite with its table and chart, and a summary.
// The figures are stored next to the charts: a run of one suite keeps the figures of the others.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { drawChart } from './chart.ts'
import { replaceBlock } from './docs-block.ts'
import { mergeReports, type Report, reportJson, type SuiteReport, secondsOf, targetsOf } from './report.ts'
import { formatTable } from './table.ts'
import { minutesText } from './text.ts'

/** Returns the paths of the files it wrote. */
export async function writeDocs(docsDir: string, report: Report, order: readonly string[]): Promise<string[]> {
  const [page, chartsDir] = [join(docsDir, 'performance.md'), join(docsDir, 'performance')]
  const results = join(chartsDir, 'results.json')
  const mergedReport = mergeReports(await readReport(results), report, order)
  let text = await readFile(page, 'utf8')
  for (const suite of report.suites) text = replaceBlock(text, suite.suite, suiteBlock(suite))
  text = replaceBlock(text, 'all', summaryBlock(mergedReport))
  await mkdir(chartsDir, { recursive: true })
  const files: [path: string, text: string][] = [
    ...report.suites.map((suite): [string, string] => [join(chartsDir, `${suite.suite}.svg`), drawChart(suite)]),
    [results, reportJson(mergedReport)],
    [page, text],
  ]
  for (const [path, content] of files) await writeFile(path, content)
  return files.map(([path]) => path)
}

async function readReport(path: string): Promise<Report | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : JSON.parse(text)
}

export function suiteBlock(suite: SuiteReport): string {
  const notes = [...new Set(suite.notes)]
  const notesText = notes.length > 0 ? `\n${notes.join('\n')}\n` : ''
  return `\`\`\`\n${formatTable(suite)}${notesText}\`\`\`\n\n![Figures of ${suite.suite} as a chart](performance/${suite.suite}.svg)`
}

export function summaryBlock({ suites, machine }: Report): string {
  const rows = suites.map((suite) => {
    const { met, all } = targetsOf([suite])
    const exponents = suite.figures.filter(({ growth }) => growth).map(({ value }) => value.toFixed(2))
    return `| [${suite.suite}](#${suite.suite}) | ${met} of ${all} | ${exponents.join(', ')} | ${minutesText(secondsOf(suite))} |`
  })
  const { met, all } = targetsOf(suites)
  const seconds = suites.reduce((sum, suite) => sum + secondsOf(suite), 0)
  return [
    '| suite | targets met | growth exponents | minutes |',
    '|---|---|---|---|',
    ...rows,
    `| all | ${met} of ${all} | | ${minutesText(seconds)} |`,
    '',
    `Measured on ${machine.cores} cores (${machine.processor}), ${machine.system}, node ${machine.node}.`,
  ].join('\n')
}
