// Label and field selectors: parsing, formatting and matching. Both are conjunctions of requirements. Which fields a kind
// supports is declared in Kind.selectableFields.
import { labelValueProblems, qualifiedNameProblems } from './names.ts'

export interface LabelRequirement {
  readonly key: string
  readonly operator: LabelOperator
  /** Exactly one for '=', '!=', '>' and '<'; none for 'exists' and '!'; sorted, without duplicates. */
  readonly values: readonly string[]
}

type LabelOperator = '=' | '!=' | 'in' | 'notin' | 'exists' | '!' | '>' | '<'

export interface LabelSelector {
  /** All must be met; sorted by key. An empty list selects everything. */
  readonly requirements: readonly LabelRequirement[]
  /** True for an absent selector, which selects no object. */
  readonly nothing?: boolean
}

export const EVERYTHING: LabelSelector = Object.freeze({ requirements: Object.freeze([]) })
export const NOTHING: LabelSelector = Object.freeze({ requirements: Object.freeze([]), nothing: true })

/** The labels of an object, if any. */
export type Labels = Readonly<Record<string, string>> | undefined | null

export class SelectorError extends Error {
  override readonly name = 'SelectorError'
}

/** `app=web,tier in (a,b),!legacy,generation>3`: commas mean AND. */
export function parseLabelSelector(text: string): LabelSelector {
  const tokens = tokenize(text)
  if (tokens.peek().kind === 'end') return EVERYTHING
  const requirements: LabelRequirement[] = []
  for (let wanted = "!, identifier, or 'end of string'"; ; wanted = "identifier after ','") {
    requirements.push(parseRequirement(tokens, wanted))
    const next = tokens.take()
    if (next.kind === 'end') return selectorOf(requirements)
    if (next.text !== ',') throw expected(next, "',' or 'end of string'")
  }
}

/** The structured form in objects: absent selects nothing, empty selects everything. */
export function labelSelectorFromObject(given: LabelSelectorObject | undefined | null): LabelSelector {
  if (!given) return NOTHING
  const requirements = Object.entries(given.matchLabels ?? {}).map(([key, value]) => requirement(key, '=', [value]))
  for (const { key, operator, values } of given.matchExpressions ?? []) {
    const parsed = OBJECT_OPERATORS.get(operator)
    if (!parsed) throw new SelectorError(`"${operator}" is not a valid label selector operator`)
    requirements.push(requirement(key, parsed, values ?? []))
  }
  return requirements.length === 0 ? EVERYTHING : selectorOf(requirements)
}

export interface LabelSelectorObject {
  readonly matchLabels?: Readonly<Record<string, string>> | null
  readonly matchExpressions?:
    | readonly { readonly key: string; readonly operator: string; readonly values?: readonly string[] | null }[]
    | null
}

export function matchesLabels({ requirements, nothing }: LabelSelector, labels: Labels): boolean {
  if (nothing) return false
  for (const one of requirements) if (!meets(one, labels)) return false
  return true
}

/** Text that parses to the same selector; equal selectors have equal texts. */
export const formatLabelSelector = ({ requirements }: LabelSelector): string =>
  requirements.map(formatRequirement).join(',')

export interface FieldRequirement {
  readonly field: string
  readonly operator: '=' | '!='
  readonly value: string
}

/** `status.phase!=Failed,spec.nodeName=n1`. In values, `,`, `=` and `\` are escaped with `\`. */
export function parseFieldSelector(text: string): FieldRequirement[] {
  return splitTerms(text)
    .filter((term) => term !== '')
    .sort(byText)
    .map((term) => {
      const parts = /^(.*?)(!=|==|=)(.*)$/s.exec(term)
      if (!parts) throw new SelectorError(`invalid selector: '${text}'; can't understand '${term}'`)
      const [, field, operator, value] = parts as unknown as [string, string, string, string]
      return { field, operator: operator === '!=' ? '!=' : '=', value: unescapeValue(value) }
    })
}

/** `fieldValue` returns the value of a field; undefined is treated as ''. */
export function matchesFields(
  requirements: readonly FieldRequirement[],
  fieldValue: (field: string) => string | undefined,
): boolean {
  return requirements.every(
    ({ field, operator, value }) => ((fieldValue(field) ?? '') === value) === (operator === '='),
  )
}

/** The value that a selector requires of a field, so that a caller can use an index instead of a scan. */
export const fieldPinnedBy = (requirements: readonly FieldRequirement[], field: string): string | undefined =>
  requirements.find((one) => one.operator === '=' && one.field === field)?.value

export const formatFieldSelector = (requirements: readonly FieldRequirement[]): string =>
  requirements
    .map(({ field, operator, value }) => `${field}${operator}${value.replace(/[\\,=]/g, '\\$&')}`)
    .sort(byText)
    .join(',')

// Label requirements

const OBJECT_OPERATORS = new Map<string, LabelOperator>([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!'],
])

const selectorOf = (requirements: LabelRequirement[]): LabelSelector => ({
  requirements: requirements.sort((a, b) => byText(a.key, b.key) || byText(formatRequirement(a), formatRequirement(b))),
})

function requirement(key: string, operator: LabelOperator, given: readonly string[]): LabelRequirement {
  checkKey(key)
  const values = [...new Set(given)].sort(byText)
  const rule = VALUE_RULES[operator]
  if (!rule.allows(values.length)) throw new SelectorError(`${shown(values)}: ${rule.otherwise}`)
  for (const value of values) {
    if ((operator === '>' || operator === '<') && toInt64(value) === undefined) {
      throw new SelectorError(`"${value}": for 'Gt', 'Lt' operators, the value must be an integer`)
    }
    const problems = labelValueProblems(value)
    if (problems.length > 0) throw new SelectorError(`invalid label value: "${value}": ${problems.join('; ')}`)
  }
  return { key, operator, values }
}

function checkKey(key: string): void {
  const problems = qualifiedNameProblems(key)
  if (problems.length > 0) throw new SelectorError(`invalid label key: "${key}": ${problems.join('; ')}`)
}

const SOME = { allows: (n: number) => n > 0, otherwise: "for 'in', 'notin' operators, values set can't be empty" }
const ONE = { allows: (n: number) => n === 1, otherwise: 'exact-match compatibility requires one single value' }
const NO = { allows: (n: number) => n === 0, otherwise: 'values set must be empty for exists and does not exist' }
const VALUE_RULES = { in: SOME, notin: SOME, '=': ONE, '!=': ONE, '>': ONE, '<': ONE, exists: NO, '!': NO }

function meets({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
  const value = labels && Object.hasOwn(labels, key) ? labels[key] : undefined
  switch (operator) {
    case '=':
    case 'in':
      return value !== undefined && values.includes(value)
    case '!=':
    case 'notin':
      return value === undefined || !values.includes(value)
    case 'exists':
      return value !== undefined
    case '!':
      return value === undefined
    case '>':
    case '<':
      return value !== undefined && isOrdered(value, operator, values[0]!)
  }
}

function isOrdered(text: string, operator: '>' | '<', limitText: string): boolean {
  const value = toInt64(text)
  const limit = toInt64(limitText)
  if (value === undefined || limit === undefined) return false
  return operator === '>' ? value > limit : value < limit
}

function toInt64(text: string): bigint | undefined {
  if (!/^[+-]?[0-9]+$/.test(text)) return undefined
  const value = BigInt(text.replace('+', ''))
  return BigInt.asIntN(64, value) === value ? value : undefined
}

function formatRequirement({ key, operator, values }: LabelRequirement): string {
  if (operator === 'exists') return key
  if (operator === '!') return `!${key}`
  if (operator === 'in' || operator === 'notin') return `${key} ${operator} (${values.join(',')})`
  return `${key}${operator}${values[0]}`
}

// The label selector grammar

interface Token {
  kind: 'word' | 'symbol' | 'end'
  text: string
}

const END: Token = { kind: 'end', text: '' }

// Longer symbols first: "==" before "=", "!=" before "!".
function tokenize(text: string) {
  const tokens = [...text.matchAll(/==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+/g)].map(
    ([found]): Token => ({ kind: /^[=!(),<>]/.test(found) ? 'symbol' : 'word', text: found }),
  )
  let position = 0
  return {
    peek: (): Token => tokens[position] ?? END,
    take: (): Token => tokens[position++] ?? END,
  }
}

type Tokens = ReturnType<typeof tokenize>

function parseRequirement(tokens: Tokens, wanted: string): LabelRequirement {
  const negated = tokens.peek().text === '!'
  if (negated) tokens.take()
  const word = tokens.take()
  if (word.kind !== 'word') throw expected(word, negated ? 'identifier' : wanted)
  checkKey(word.text)
  if (isTermEnd(tokens.peek())) return requirement(word.text, negated ? '!' : 'exists', [])
  if (negated) throw expected(tokens.take(), "',' or 'end of string'")
  const operator = tokens.take()
  switch (operator.text) {
    case '=':
    case '==':
      return requirement(word.text, '=', [parseValue(tokens)])
    case '!=':
    case '>':
    case '<':
      return requirement(word.text, operator.text, [parseValue(tokens)])
    case 'in':
    case 'notin':
      return requirement(word.text, operator.text, parseValues(tokens))
    default:
      throw expected(operator, 'in, notin, =, ==, !=, gt, lt')
  }
}

function parseValue(tokens: Tokens): string {
  if (isTermEnd(tokens.peek())) return ''
  const word = tokens.take()
  if (word.kind !== 'word') throw expected(word, 'identifier')
  return word.text
}

// Values may be empty: "(a,,b)" and "(a,b,)" contain a, b and the empty text; "()" contains the empty text only.
function parseValues(tokens: Tokens): string[] {
  const open = tokens.take()
  if (open.text !== '(') throw expected(open, "'('")
  const values: string[] = []
  for (;;) {
    values.push(tokens.peek().kind === 'word' ? tokens.take().text : '')
    const next = tokens.take()
    if (next.text === ')') return values
    if (next.text !== ',') throw expected(next, "',' or ')'")
  }
}

const isTermEnd = ({ kind, text }: Token): boolean => kind === 'end' || text === ','

const expected = (found: Token, wanted: string): SelectorError =>
  new SelectorError(`unable to parse requirement: found '${found.text}', expected: ${wanted}`)

// The field selector grammar

function splitTerms(text: string): string[] {
  const terms: string[] = []
  let start = 0
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\')
      i++ // the next character is part of the value
    else if (text[i] === ',') {
      terms.push(text.slice(start, i))
      start = i + 1
    }
  }
  terms.push(text.slice(start))
  return terms
}

function unescapeValue(value: string): string {
  return value.replace(/\\([\s\S]?)|[,=]/g, (found, escaped: string | undefined) => {
    if (escaped === undefined) {
      throw new SelectorError(`invalid field selector: unescaped character in value: '${found}'`)
    }
    if (escaped === '' || !'\\,='.includes(escaped)) {
      throw new SelectorError(`invalid field selector: invalid escape sequence: ${found}`)
    }
    return escaped
  })
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const shown = (values: readonly string[]): string => JSON.stringify(values)
