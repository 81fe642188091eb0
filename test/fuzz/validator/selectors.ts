// Checks selectors in objects: label selectors, node selectors and topology terms.
import { duplicatesIn, format, type Report } from './findings.ts'
import { isDnsSubdomain, isLabelValue, isQualifiedName } from './names.ts'

export function checkLabelSelector(selector: any, path: string, report: Report): void {
  for (const [key, value] of Object.entries<string>(selector?.matchLabels ?? {})) {
    if (!isQualifiedName(key)) report(`${path}.matchLabels`, `${format(key)} is not a valid label key`)
    if (!isLabelValue(value)) report(`${path}.matchLabels[${key}]`, `${format(value)} is not a valid label value`)
  }
  for (const [i, { key, operator, values = [] }] of (selector?.matchExpressions ?? []).entries()) {
    const fieldPath = `${path}.matchExpressions[${i}]`
    if (!isQualifiedName(key)) report(`${fieldPath}.key`, `${format(key)} is not a valid label key`)
    checkOperator({ operator, values, allowed: ['In', 'NotIn', 'Exists', 'DoesNotExist'] }, fieldPath, report)
    for (const value of values)
      if (!isLabelValue(value)) report(`${fieldPath}.values`, `${format(value)} is not a valid label value`)
  }
}

/** Whether a valid label selector selects these labels. */
export function matchesSelector(selector: any, labels: Record<string, string>): boolean {
  const expressions = [
    ...Object.entries<string>(selector?.matchLabels ?? {}).map(([key, value]) => ({
      key,
      operator: 'In',
      values: [value],
    })),
    ...(selector?.matchExpressions ?? []),
  ]
  return expressions.every(({ key, operator, values = [] }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined
    if (operator === 'Exists') return value !== undefined
    if (operator === 'DoesNotExist') return value === undefined
    return values.includes(value) === (operator === 'In')
  })
}

function checkOperator(
  { operator, values, allowed }: { operator: string; values: readonly string[]; allowed: readonly string[] },
  fieldPath: string,
  report: Report,
): void {
  if (!allowed.includes(operator)) report(`${fieldPath}.operator`, `${format(operator)} is not a valid operator`)
  if (['In', 'NotIn'].includes(operator) && values.length === 0) report(`${fieldPath}.values`, 'missing')
  if (['Exists', 'DoesNotExist'].includes(operator) && values.length > 0) report(`${fieldPath}.values`, 'must be empty')
  if (['Gt', 'Lt'].includes(operator) && values.length !== 1) report(`${fieldPath}.values`, 'exactly one is required')
}

const NODE_OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt']

export function checkNodeSelector(selector: any, path: string, report: Report): void {
  const terms = selector?.nodeSelectorTerms ?? []
  if (terms.length === 0) report(`${path}.nodeSelectorTerms`, 'missing')
  for (const [i, term] of terms.entries()) checkNodeTerm(term, `${path}.nodeSelectorTerms[${i}]`, report)
}

export function checkNodeTerm(term: any, path: string, report: Report): void {
  for (const [i, { key, operator, values = [] }] of (term.matchExpressions ?? []).entries()) {
    const fieldPath = `${path}.matchExpressions[${i}]`
    if (!isQualifiedName(key)) report(`${fieldPath}.key`, `${format(key)} is not a valid label key`)
    checkOperator({ operator, values, allowed: NODE_OPERATORS }, fieldPath, report)
    for (const value of values)
      if (!isLabelValue(value)) report(`${fieldPath}.values`, `${format(value)} is not a valid label value`)
  }
  for (const [i, { key, operator, values = [] }] of (term.matchFields ?? []).entries()) {
    const fieldPath = `${path}.matchFields[${i}]`
    if (key !== 'metadata.name') report(`${fieldPath}.key`, `${format(key)} is not a field of nodes`)
    if (!['In', 'NotIn'].includes(operator))
      report(`${fieldPath}.operator`, `${format(operator)} is not a valid operator`)
    if (values.length !== 1) report(`${fieldPath}.values`, 'exactly one is required')
    for (const value of values)
      if (!isDnsSubdomain(value)) report(`${fieldPath}.values`, `${format(value)} is not a valid node name`)
  }
}

export function checkTopologies(terms: readonly any[], path: string, report: Report): void {
  const normalizedTerms: string[] = []
  for (const [i, { matchLabelExpressions: expressions = [] }] of terms.entries()) {
    const fieldPath = `${path}[${i}].matchLabelExpressions`
    if (expressions.length === 0) report(fieldPath, 'a term without expressions')
    const keys = expressions.map(({ key }: any) => key)
    if (duplicatesIn(keys).length > 0) report(fieldPath, 'duplicate key')
    for (const { key, values = [] } of expressions) {
      if (!isQualifiedName(key)) report(`${fieldPath}.key`, `${format(key)} is not a valid label key`)
      if (values.length === 0) report(`${fieldPath}.values`, 'missing')
      if (duplicatesIn(values).length > 0) report(`${fieldPath}.values`, 'duplicate value')
    }
    normalizedTerms.push(
      JSON.stringify(expressions.map(({ key, values = [] }: any) => [key, [...values].sort()]).sort()),
    )
  }
  if (duplicatesIn(normalizedTerms).length > 0) report(path, 'duplicate term')
}
