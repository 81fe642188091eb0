import { expect, it } from 'vitest'
import type { Finding } from './check.ts'
import { formatReport } from './format-report.ts'
import type { Report } from './report.ts'

const aReport = (findings: readonly Finding[]): Report => ({
  server: 'https://10.0.0.1:6443',
  checks: [
    { id: 'a', title: 'Leases', findings },
    { id: 'b', title: 'Disk', findings: [] },
  ],
  counts: { ok: 1, warning: 1, error: 2, unknown: 0 },
})

it('PLUS-9 formatReport prints a symbol per finding, the remedy once for consecutive findings, and no empty check', () => {
  const findings: Finding[] = [
    { status: 'ok', message: 'Fine.' },
    { status: 'error', object: 'Lease a', message: 'Bad.', remedy: 'do this' },
    { status: 'error', message: 'Bad too.', remedy: 'do this' },
    { status: 'warning', message: 'Odd.', remedy: 'do that' },
    { status: 'unknown', message: 'Not checked.' },
  ]
  expect(formatReport(aReport(findings), { hasColors: false })).toBe(
    'Leases\n  ✔ Fine.\n  ✖ Lease a: Bad.\n  ✖ Bad too.\n    → do this\n  ! Odd.\n    → do that\n  ? Not checked.\n' +
      '\n2 errors, 1 warning, 0 unknown, 1 ok\n',
  )
})

it('PLUS-9 formatReport colors only the symbols', () => {
  const text = formatReport(aReport([{ status: 'error', message: 'Bad.' }]), { hasColors: true })
  expect(text).toContain('  \x1b[31m✖\x1b[0m Bad.\n')
})

it('PLUS-9 formatReport prints at most 20 findings of a check', () => {
  const findings = Array.from({ length: 23 }, (_, index): Finding => ({ status: 'warning', message: `${index}` }))
  const text = formatReport(aReport(findings), { hasColors: false })
  expect(text).toContain('  ! 19\n  … and 3 more, with -o json\n')
})
