// Formats the report of `stowage doctor` as text: a heading per check, and a symbol per finding with the remedy below
// it.
import { type Color, paint } from '../../output/color.ts'
import type { Finding, FindingStatus } from './check.ts'
import type { CheckReport, Report } from './report.ts'

const SYMBOLS: Readonly<Record<FindingStatus, string>> = { ok: '✔', warning: '!', error: '✖', unknown: '?' }
const COLORS: Readonly<Record<FindingStatus, Color>> = { ok: 'green', warning: 'yellow', error: 'red', unknown: 'cyan' }

/** The text shows at most this many findings per check. JSON has all of them. */
const SHOWN_FINDINGS_MAX = 20

export function formatReport(report: Report, { hasColors }: { readonly hasColors: boolean }): string {
  const checks = report.checks.filter(({ findings }) => findings.length > 0)
  const sections = checks.map((check) => formatCheck(check, hasColors))
  return `${sections.join('')}\n${formatCounts(report)}\n`
}

function formatCheck({ title, findings }: CheckReport, hasColors: boolean): string {
  const shownFindings = findings.slice(0, SHOWN_FINDINGS_MAX)
  const lines = shownFindings.flatMap((finding, index) => {
    // Consecutive findings often have one remedy, which follows the last of them.
    const remedy = finding.remedy === shownFindings[index + 1]?.remedy ? undefined : finding.remedy
    return [formatFinding(finding, hasColors), ...(remedy ? [`    → ${remedy}`] : [])]
  })
  const omittedCount = findings.length - shownFindings.length
  if (omittedCount > 0) lines.push(`  … and ${omittedCount} more, with -o json`)
  return `${title}\n${lines.map((line) => `${line}\n`).join('')}`
}

function formatFinding({ status, object, message }: Finding, hasColors: boolean): string {
  const symbol = paint(SYMBOLS[status], COLORS[status], hasColors)
  return `  ${symbol} ${object ? `${object}: ` : ''}${message}`
}

function formatCounts({ counts }: Report): string {
  const plural = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`
  return `${plural(counts.error, 'error')}, ${plural(counts.warning, 'warning')}, ${counts.unknown} unknown, ${counts.ok} ok`
}
