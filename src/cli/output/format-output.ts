// Formats a command's result in the format that --output selects: text, JSON on one line, or YAML.
import type { JsonValue } from '../../api/json-value.ts'

export const OUTPUT_FORMATS = ['text', 'json', 'yaml'] as const
export type OutputFormat = (typeof OUTPUT_FORMATS)[number]

/** Returns the value as JSON or YAML, or the text. `formatText` is called for text only. */
export async function formatOutput(format: OutputFormat, value: object, formatText: () => string): Promise<string> {
  const formatValue = await loadValueFormatter(format)
  return formatValue ? formatValue(value) : formatText()
}

export interface FormatterOptions {
  /** Whether the command prints several values. Each is then a YAML document with its own start. Default: false. */
  readonly isStream?: boolean
}

/** Returns a function that formats values as JSON or YAML, or undefined if the format is text. */
export async function loadValueFormatter(
  format: OutputFormat,
  { isStream = false }: FormatterOptions = {},
): Promise<((value: object) => string) | undefined> {
  if (format === 'text') return undefined
  if (format === 'json') return (value) => `${JSON.stringify(value)}\n`
  const { loadYamlPrinter } = await import('../../api/print-yaml.ts')
  const print = await loadYamlPrinter()
  // The value is converted to JSON first, so that YAML has the same fields, without undefined ones.
  return (value) => `${isStream ? '---\n' : ''}${print(JSON.parse(JSON.stringify(value)) as JsonValue)}`
}
