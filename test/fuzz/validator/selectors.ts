// Selectors inside objects: labels of volumes and nodes, node affinity, topology terms.
import { repeated, type Say, show } from './findings.ts'
import { isDnsSubdomain, isLabelValue, isQualifiedName } from './names.ts'

export function checkLabelSelector(selector: any, path: string, say: Say): void {
  for (const [key, value] of Object.entries<string>(selector?.matchLabels ?? {})) {
    if (!isQualifiedName(key)) say(`${path}.matchLabels`, `${show(key)} is no label key`)
    if (!isLabelValue(value)) say(`${path}.matchLabels[${key}]`, `${show(value)} is no label value`)
  }
  for (const [i, { key, operator, values = [] }] of (selector?.matchExpressions ?? []).entries()) {
    const at = `${path}.matchExpressions[${i}]`
    if (!isQualifiedName(key)) say(`${at}.key`, `${show(key)} is no label key`)
    checkOperator({ operator, values, allowed: ['In', 'NotIn', 'Exists', 'DoesNotExist'] }, at, say)
    for (const value of values) if (!isLabelValue(value)) say(`${at}.values`, `${show(value)} is no label value`)
  }
}

function checkOperator(
  { operator, values, allowed }: { operator: string; values: readonly string[]; allowed: readonly string[] },
  at: string,
  say: Say,
): void {
  if (!allowed.includes(operator)) say(`${at}.operator`, `${show(operator)} is no operator`)
  if (['In', 'NotIn'].includes(operator) && values.length === 0) say(`${at}.values`, 'missing')
  if (['Exists', 'DoesNotExist'].includes(operator) && values.length > 0) say(`${at}.values`, 'not wanted')
  if (['Gt', 'Lt'].includes(operator) && values.length !== 1) say(`${at}.values`, 'exactly one is wanted')
}

const NODE_OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt']

export function checkNodeSelector(selector: any, path: string, say: Say): void {
  const terms = selector?.nodeSelectorTerms ?? []
  if (terms.length === 0) say(`${path}.nodeSelectorTerms`, 'missing')
  for (const [i, term] of terms.entries()) checkNodeTerm(term, `${path}.nodeSelectorTerms[${i}]`, say)
}

export function checkNodeTerm(term: any, path: string, say: Say): void {
  for (const [i, { key, operator, values = [] }] of (term.matchExpressions ?? []).entries()) {
    const at = `${path}.matchExpressions[${i}]`
    if (!isQualifiedName(key)) say(`${at}.key`, `${show(key)} is no label key`)
    checkOperator({ operator, values, allowed: NODE_OPERATORS }, at, say)
    for (const value of values) if (!isLabelValue(value)) say(`${at}.values`, `${show(value)} is no label value`)
  }
  for (const [i, { key, operator, values = [] }] of (term.matchFields ?? []).entries()) {
    const at = `${path}.matchFields[${i}]`
    if (key !== 'metadata.name') say(`${at}.key`, `${show(key)} is no field of nodes`)
    if (!['In', 'NotIn'].includes(operator)) say(`${at}.operator`, `${show(operator)} is no operator`)
    if (values.length !== 1) say(`${at}.values`, 'exactly one is wanted')
    for (const value of values) if (!isDnsSubdomain(value)) say(`${at}.values`, `${show(value)} is no node's name`)
  }
}

export function checkTopologies(terms: readonly any[], path: string, say: Say): void {
  const seen: string[] = []
  for (const [i, { matchLabelExpressions: expressions = [] }] of terms.entries()) {
    const at = `${path}[${i}].matchLabelExpressions`
    if (expressions.length === 0) say(at, 'a term without expressions')
    const keys = expressions.map(({ key }: any) => key)
    if (repeated(keys).length > 0) say(at, 'a key twice')
    for (const { key, values = [] } of expressions) {
      if (!isQualifiedName(key)) say(`${at}.key`, `${show(key)} is no label key`)
      if (values.length === 0) say(`${at}.values`, 'missing')
      if (repeated(values).length > 0) say(`${at}.values`, 'a value twice')
    }
    seen.push(JSON.stringify(expressions.map(({ key, values = [] }: any) => [key, [...values].sort()]).sort()))
  }
  if (repeated(seen).length > 0) say(path, 'two equal terms')
}
