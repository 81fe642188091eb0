// Formats a diagnosis as a tree of text: a symbol and a message per cause, with its fixes below it.
import type { Diagnosis, DiagnosisState, Fix } from '../../../diagnosis/index.ts'
import { type Color, paint } from '../../output/color.ts'

const SYMBOLS: Readonly<Record<DiagnosisState, string>> = { ready: '✔', waiting: '…', failed: '✖', unknown: '?' }
const COLORS: Readonly<Record<DiagnosisState, Color>> = {
  ready: 'green',
  waiting: 'yellow',
  failed: 'red',
  unknown: 'cyan',
}

/** The text shows at most this many children of a cause, such as nodes. JSON and YAML have all of them. */
const SHOWN_CHILDREN_MAX = 10

const SHORT_KINDS: Readonly<Record<string, string>> = {
  PersistentVolumeClaim: 'pvc',
  PersistentVolume: 'pv',
  Pod: 'pod',
  Node: 'node',
}

export interface FormatOptions {
  readonly hasColors: boolean
}

export function formatTree(diagnosis: Diagnosis, options: FormatOptions): string {
  return `${formatBranch(diagnosis, '', options).join('\n')}\n`
}

/** `indent` precedes the lines below the first one. */
function formatBranch(diagnosis: Diagnosis, indent: string, options: FormatOptions): string[] {
  const { children = [], fixes = [] } = diagnosis
  const shownChildren = children.slice(0, SHOWN_CHILDREN_MAX)
  const omittedCount = children.length - shownChildren.length
  const guide = children.length > 0 ? '│ ' : '  '
  const lines = [formatHead(diagnosis, options), ...fixes.map((fix) => `${indent}${guide}→ ${formatFix(fix)}`)]
  shownChildren.forEach((child, index) => {
    const isLast = index === shownChildren.length - 1 && omittedCount === 0
    // Consecutive causes often have the same fixes, which follow the last of them.
    const isRepeated = JSON.stringify(child.fixes) === JSON.stringify(shownChildren[index + 1]?.fixes)
    const branch = isRepeated ? { ...child, fixes: [] } : child
    const [head, ...below] = formatBranch(branch, `${indent}${isLast ? '  ' : '│ '}`, options)
    lines.push(`${indent}${isLast ? '└─' : '├─'}${head}`, ...below)
  })
  if (omittedCount > 0) lines.push(`${indent}└─… and ${omittedCount} more, with -o json`)
  return lines
}

function formatHead({ subject, state, reason, message }: Diagnosis, { hasColors }: FormatOptions): string {
  const symbol = paint(SYMBOLS[state], COLORS[state], hasColors)
  const kind = SHORT_KINDS[subject.kind] ?? subject.kind
  return `${symbol} ${kind}/${subject.name}: ${message} [${reason}]`
}

const formatFix = ({ message, command, losesData }: Fix): string =>
  `${losesData ? 'LOSES DATA: ' : ''}${message}${command === undefined ? '' : `: ${command}`}`
