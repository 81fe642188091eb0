// Formats the report of `stowage verify` as JUnit XML: a test case per check. Advice is a passed test case with output.
import type { CheckResult, VerifyReport } from '../../../verify/index.ts'

export function formatJunit({ driver, checks, counts, durationMs, seed }: VerifyReport): string {
  const attributes = formatAttributes({
    name: `stowage verify ${driver.name} ${driver.version}`,
    tests: checks.length,
    failures: counts.violated,
    errors: 0,
    skipped: counts['not applicable'] + counts['not run'],
    time: durationMs / 1_000,
  })
  const cases = checks.map((check) => formatCase(check, driver.name)).join('')
  return (
    `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n<testsuite ${attributes}>\n` +
    `<properties><property ${formatAttributes({ name: 'seed', value: seed })}/></properties>\n` +
    `${cases}</testsuite>\n</testsuites>\n`
  )
}

function formatCase(check: CheckResult, driver: string): string {
  const { id, title, durationMs } = check
  const attributes = formatAttributes({ classname: driver, name: `${id}: ${title}`, time: durationMs / 1_000 })
  return `<testcase ${attributes}>${formatOutcome(check)}</testcase>\n`
}

function formatOutcome({ status, message = '', rule, calls = [] }: CheckResult): string {
  const details = `${rule.section}: ${rule.text}\n${calls.map((call) => JSON.stringify(call)).join('\n')}`
  if (status === 'violated') return `<failure ${formatAttributes({ message })}>${escapeXml(details)}</failure>`
  if (status === 'advice') return `<system-out>${escapeXml(`${message}\n${details}`)}</system-out>`
  return status === 'passed' ? '' : `<skipped ${formatAttributes({ message })}/>`
}

const formatAttributes = (attributes: Readonly<Record<string, string | number>>): string =>
  Object.entries(attributes)
    .map(([name, value]) => `${name}="${escapeXml(String(value))}"`)
    .join(' ')

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}
/** Characters that XML 1.0 does not allow, which a driver may send. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove
const INVALID_CHARACTERS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g

const escapeXml = (text: string): string =>
  text
    .toWellFormed()
    .replace(INVALID_CHARACTERS, '\ufffd')
    .replace(/[&<>"']/g, (character) => ENTITIES[character] as string)
