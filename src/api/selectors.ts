// Parses, formats and matches label and field selectors. An object matches if it satisfies all requirements of the
// selector. Kind.selectableFields declares the fields that a kind supports.
import { labelValueProblems, qualifiedNameProblems } from './names.ts'

export interface LabelRequirement {
  readonly key: string
  readonly operator: LabelOperator
  /** Sorted, without duplicates. Exactly one value for '=', '!=', '>' and '<'; none for 'exists' and '!'. */
  readonly values: readonly string[]
}

type LabelOperator = '=' | '!=' | 'in' | 'notin' | 'exists' | '!' | '>' | '<'

export interface LabelSelector {
  /** The requirements, sorted by key. An empty list selects every object, unless matchesNothing is set. */
  readonly requirements: readonly LabelRequirement[]
  /** True for an absent selector, which selects no object. */
  readonly matchesNothing?: boolean
}

export const EVERYTHING: LabelSelector = Object.freeze({ requirements: Object.freeze([]) })
export const NOTHING: LabelSelector = Object.freeze({ requirements: Object.freeze([]), matchesNothing: true })

/** An object's labels, if any. */
export type Labels = Readonly<Record<string, string>> | undefined | null

export class SelectorError extends Error {
  override readonly name = 'SelectorError'
}

/** Parses a selector such as `app=web,tier in (a,b),!legacy,generation>3`. */
export function parseLabelSelector(text: string): LabelSelector {
  const tokens = tokenize(text)
  if (tokens.peek().kind === 'end') return EVERYTHING
  const requirements: LabelRequirement[] = []
  for (let expectation = "!, identifier, or 'end of string'"; ; expectation = "identifier after ','") {
    requirements.push(parseRequirement(tokens, expectation))
    const nextToken = tokens.take()
    if (nextToken.kind === 'end') return createSelector(requirements)
    if (nextToken.text !== ',') throw unexpectedToken(nextToken, "',' or 'end of string'")
  }
}

/** Converts an object's selector. An absent selector selects no objects; an empty one selects all. */
export function labelSelectorFromObject(selector: LabelSelectorObject | undefined | null): LabelSelector {
  if (!selector) return NOTHING
  const requirements = Object.entries(selector.matchLabels ?? {}).map(([key, value]) =>
    createRequirement(key, '=', [value]),
  )
  for (const { key, operator, values } of selector.matchExpressions ?? []) {
    const labelOperator = OBJECT_OPERATORS.get(operator)
    if (!labelOperator) throw new SelectorError(`"${operator}" is not a valid label selector operator`)
    requirements.push(createRequirement(key, labelOperator, values ?? []))
  }
  return requirements.length === 0 ? EVERYTHING : createSelector(requirements)
}

export interface LabelSelectorObject {
  readonly matchLabels?: Readonly<Record<string, string>> | null
  readonly matchExpressions?:
    | readonly { readonly key: string; readonly operator: string; readonly values?: readonly string[] | null }[]
    | null
}

export function matchesLabels({ requirements, matchesNothing }: LabelSelector, labels: Labels): boolean {
  if (matchesNothing) return false
  for (const requirement of requirements) if (!satisfies(requirement, labels)) return false
  return true
}

/** Formats a selector so that it can be parsed again. Equal selectors have equal texts. NOTHING has no text form. */
export const formatLabelSelector = ({ requirements }: LabelSelector): string =>
  requirements.map(formatRequirement).join(',')

export interface FieldRequirement {
  readonly field: string
  readonly operator: '=' | '!='
  readonly value: string
}

/** Parses a selector such as `status.phase!=Failed,spec.nodeName=n1`. In values, `\` escapes `,`, `=` and `\`. */
export function parseFieldSelector(text: string): FieldRequirement[] {
  return splitTerms(text)
    .filter((term) => term !== '')
    .sort(compareText)
    .map((term) => {
      const match = /^(.*?)(!=|==|=)(.*)$/s.exec(term)
      if (!match) throw new SelectorError(`invalid selector: '${text}'; can't understand '${term}'`)
      const [, field, operator, value] = match as unknown as [string, string, string, string]
      return { field, operator: operator === '!=' ? '!=' : '=', value: unescapeValue(value) }
    })
}

/** Returns whether all requirements are satisfied. `fieldValue` returns a field's value; undefined equals ''. */
export function matchesFields(
  requirements: readonly FieldRequirement[],
  fieldValue: (field: string) => string | undefined,
): boolean {
  return requirements.every(
    ({ field, operator, value }) => ((fieldValue(field) ?? '') === value) === (operator === '='),
  )
}

/** Returns the value that a selector requires of a field. The caller can use it for a lookup in an index. */
export const requiredFieldValue = (requirements: readonly FieldRequirement[], field: string): string | undefined =>
  requirements.find((requirement) => requirement.operator === '=' && requirement.field === field)?.value

export const formatFieldSelector = (requirements: readonly FieldRequirement[]): string =>
  requirements
    .map(({ field, operator, value }) => `${field}${operator}${value.replace(/[\\,=]/g, '\\$&')}`)
    .sort(compareText)
    .join(',')

// Label requirements

const OBJECT_OPERATORS = new Map<string, LabelOperator>([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!'],
])

const createSelector = (requirements: LabelRequirement[]): LabelSelector => ({
  requirements: requirements.sort(
    (a, b) => compareText(a.key, b.key) || compareText(formatRequirement(a), formatRequirement(b)),
  ),
})

function createRequirement(key: string, operator: LabelOperator, unsortedValues: readonly string[]): LabelRequirement {
  checkKey(key)
  const values = [...new Set(unsortedValues)].sort(compareText)
  const rule = VALUE_RULES[operator]
  if (!rule.allows(values.length)) throw new SelectorError(`${formatValues(values)}: ${rule.message}`)
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

const ONE_OR_MORE = { allows: (n: number) => n > 0, message: "for 'in', 'notin' operators, values set can't be empty" }
const EXACTLY_ONE = { allows: (n: number) => n === 1, message: 'exact-match compatibility requires one single value' }
const NO_VALUES = { allows: (n: number) => n === 0, message: 'values set must be empty for exists and does not exist' }
const VALUE_RULES = {
  in: ONE_OR_MORE,
  notin: ONE_OR_MORE,
  '=': EXACTLY_ONE,
  '!=': EXACTLY_ONE,
  '>': EXACTLY_ONE,
  '<': EXACTLY_ONE,
  exists: NO_VALUES,
  '!': NO_VALUES,
}

function satisfies({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
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
      return value !== undefined && isIntegerInOrder(value, operator, values[0]!)
  }
}

function isIntegerInOrder(text: string, operator: '>' | '<', limitText: string): boolean {
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

// The pattern has longer symbols first: "==" before "=", "!=" before "!".
function tokenize(text: string) {
  const tokens = [...text.matchAll(/==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+/g)].map(
    ([symbol]): Token => ({ kind: /^[=!(),<>]/.test(symbol) ? 'symbol' : 'word', text: symbol }),
  )
  let position = 0
  return {
    peek: (): Token => tokens[position] ?? END,
    take: (): Token => tokens[position++] ?? END,
  }
}

type Tokens = ReturnType<typeof tokenize>

function parseRequirement(tokens: Tokens, expectation: string): LabelRequirement {
  const isNegated = tokens.peek().text === '!'
  if (isNegated) tokens.take()
  const keyToken = tokens.take()
  if (keyToken.kind !== 'word') throw unexpectedToken(keyToken, isNegated ? 'identifier' : expectation)
  checkKey(keyToken.text)
  if (isTermEnd(tokens.peek())) return createRequirement(keyToken.text, isNegated ? '!' : 'exists', [])
  if (isNegated) throw unexpectedToken(tokens.take(), "',' or 'end of string'")
  const operator = tokens.take()
  switch (operator.text) {
    case '=':
    case '==':
      return createRequirement(keyToken.text, '=', [parseValue(tokens)])
    case '!=':
    case '>':
    case '<':
      return createRequirement(keyToken.text, operator.text, [parseValue(tokens)])
    case 'in':
    case 'notin':
      return createRequirement(keyToken.text, operator.text, parseValues(tokens))
    default:
      throw unexpectedToken(operator, 'in, notin, =, ==, !=, gt, lt')
  }
}

function parseValue(tokens: Tokens): string {
  if (isTermEnd(tokens.peek())) return ''
  const valueToken = tokens.take()
  if (valueToken.kind !== 'word') throw unexpectedToken(valueToken, 'identifier')
  return valueToken.text
}

// Values may be empty: "(a,,b)" and "(a,b,)" contain a, b and the empty string; "()" contains only the empty string.
function parseValues(tokens: Tokens): string[] {
  const openingToken = tokens.take()
  if (openingToken.text !== '(') throw unexpectedToken(openingToken, "'('")
  const values: string[] = []
  for (;;) {
    values.push(tokens.peek().kind === 'word' ? tokens.take().text : '')
    const nextToken = tokens.take()
    if (nextToken.text === ')') return values
    if (nextToken.text !== ',') throw unexpectedToken(nextToken, "',' or ')'")
  }
}

const isTermEnd = ({ kind, text }: Token): boolean => kind === 'end' || text === ','

const unexpectedToken = (token: Token, expectation: string): SelectorError =>
  new SelectorError(`unable to parse requirement: found '${token.text}', expected: ${expectation}`)

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
  return value.replace(/\\([\s\S]?)|[,=]/g, (match, escapedCharacter: string | undefined) => {
    if (escapedCharacter === undefined) {
      throw new SelectorError(`invalid field selector: unescaped character in value: '${match}'`)
    }
    if (escapedCharacter === '' || !'\\,='.includes(escapedCharacter)) {
      throw new SelectorError(`invalid field selector: invalid escape sequence: ${match}`)
    }
    return escapedCharacter
  })
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const formatValues = (values: readonly string[]): string => JSON.stringify(values)
