// Formats the report of `stowage verify` as text: a line per check, and for each violation or advice the rule, the calls that
// prove it, and the command that repeats the check.
import type { CheckResult, CheckStatus, LoggedCall, VerifyReport } from '../../../verify/index.ts'
import { type Color, paint } from '../../output/color.ts'

export interface FormatOptions {
  readonly hasColors: boolean
  /** The command that repeats one check. */
  replayCommand(id: string): string
}

const SYMBOLS: Readonly<Record<CheckStatus, string>> = {
  passed: '✔',
  violated: '✖',
  advice: '!',
  'not applicable': '-',
  'not run': '?',
}
const COLORS: Readonly<Record<CheckStatus, Color>> = {
  passed: 'green',
  violated: 'red',
  advice: 'yellow',
  'not applicable': 'cyan',
  'not run': 'yellow',
}
/** Longer requests and responses are truncated in the text. JSON has them in full. */
const SHOWN_CHARACTERS_MAX = 400

export function formatVerifyReport(report: VerifyReport, options: FormatOptions): string {
  const { driver, checks, counts, leftovers, seed, stopped } = report
  const lines = [
    `Driver ${driver.name} ${driver.version}`,
    `  controller  ${driver.controller.join(', ') || 'none'}`,
    `  node        ${driver.node.join(', ') || 'none'}`,
    `  plugin      ${[...driver.plugin, ...driver.expansion.map((name) => `${name} expansion`)].join(', ') || 'none'}`,
    '',
    ...checks.map((check) => formatLine(check, options)),
    '',
    ...checks.filter(hasFinding).flatMap((check) => formatFinding(check, options)),
    ...(leftovers.length > 0 ? ['Left behind:', ...leftovers.map((text) => `  ${text}`), ''] : []),
    ...(stopped === undefined ? [] : [`The verification ended early: ${stopped}`, '']),
    `${counts.passed} passed, ${counts.violated} violated, ${counts.advice} advice, ${counts['not applicable']} not applicable, ` +
      `${counts['not run']} not run, in ${(report.durationMs / 1_000).toFixed(1)} s (seed ${seed})`,
  ]
  return `${lines.join('\n')}\n`
}

const hasFinding = ({ status }: CheckResult): boolean => status === 'violated' || status === 'advice'

function formatLine({ id, title, status, message }: CheckResult, { hasColors }: FormatOptions): string {
  const symbol = paint(SYMBOLS[status], COLORS[status], hasColors)
  const reason = status === 'not applicable' || status === 'not run' ? ` (${status}: ${message})` : ''
  return `${symbol} ${id}: ${title}${reason}`
}

function formatFinding(check: CheckResult, { hasColors, replayCommand }: FormatOptions): string[] {
  const { id, title, rule, status, message = '', calls = [] } = check
  return [
    `${paint(SYMBOLS[status], COLORS[status], hasColors)} ${id}: ${title}`,
    `  found   ${message}`,
    `  rule    CSI specification, ${rule.section}: ${rule.text}${rule.level === 'should' ? ' (recommended)' : ''}`,
    `  calls   ${calls.length === 0 ? 'none' : ''}`.trimEnd(),
    ...calls.flatMap(formatCall),
    `  repeat  ${replayCommand(id)}`,
    '',
  ]
}

function formatCall(call: LoggedCall): string[] {
  const { number, method, request, code, response, message, atMs, durationMs, fault } = call
  const outcome = code === 'OK' ? `OK ${JSON.stringify(response)}` : `${code}: ${message}`
  return [
    `    ${String(number).padStart(3)}  +${atMs} ms  ${method} ${shorten(JSON.stringify(request))}`,
    `         → ${shorten(outcome)} (${durationMs} ms)${fault ? `; ${fault}` : ''}`,
  ]
}

const shorten = (text: string): string =>
  text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text
