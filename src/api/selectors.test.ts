import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  EVERYTHING,
  formatFieldSelector,
  formatLabelSelector,
  labelSelectorFromObject,
  matchesFields,
  matchesLabels,
  NOTHING,
  parseFieldSelector,
  parseLabelSelector,
  requiredFieldValue,
} from './selectors.ts'

describe('parseLabelSelector', () => {
  it.each([
    ['', ''],
    ['  ', ''],
    ['x=a', 'x=a'],
    ['x==a', 'x=a'],
    ['x = a , y != b', 'x=a,y!=b'],
    ['x=', 'x='],
    ['x=,y', 'x=,y'],
    ['x', 'x'],
    ['! x', '!x'],
    ['x in (b,a,a)', 'x in (a,b)'],
    ['x notin(a)', 'x notin (a)'],
    ['x in ()', 'x in ()'],
    ['x in (a,)', 'x in (,a)'],
    ['x in (,,a)', 'x in (,a)'],
    ['x>1,x<5', 'x<5,x>1'],
    ['z,y,x', 'x,y,z'],
    ['in in (in,notin)', 'in in (in,notin)'],
    ['notin=in', 'notin=in'],
    ['\tx\n=\r\na', 'x=a'],
    ['example.com/app=web', 'example.com/app=web'],
  ])('parses %j as %j', (text, canonical) => {
    expect(formatLabelSelector(parseLabelSelector(text))).toBe(canonical)
  })

  it.each([
    [',x', "found ',', expected: !, identifier, or 'end of string'"],
    ['x,', "found '', expected: identifier after ','"],
    ['x,,y', "found ',', expected: identifier after ','"],
    ['!', "found '', expected: identifier"],
    ['!x=a', "found '=', expected: ',' or 'end of string'"],
    ['x y', "found 'y', expected: in, notin, =, ==, !=, gt, lt"],
    ['x===a', "found '=', expected: identifier"],
    ['x=a b', "found 'b', expected: ',' or 'end of string'"],
    ['x in a', "found 'a', expected: '('"],
    ['x in (a', "found '', expected: ',' or ')'"],
    ['x in (a b)', "found 'b', expected: ',' or ')'"],
    ['x>a', 'the value must be an integer'],
    ['x>', 'the value must be an integer'],
    ['x>99999999999999999999', 'the value must be an integer'],
    ['-x=a', 'invalid label key: "-x": name part must consist of'],
    ['x=-a', 'invalid label value: "-a": a valid label must be'],
    [`x=${'a'.repeat(64)}`, 'must be no more than 63 bytes'],
    ['x\u00a0=a', 'invalid label key'],
  ])('SYS-10 rejects %j', (text, message) => {
    expect(() => parseLabelSelector(text)).toThrow(message)
  })

  it('parses the formatted selector to the same selector', () => {
    fc.assert(
      fc.property(anyLabelSelector, (text) => {
        const formattedText = formatLabelSelector(parseLabelSelector(text))
        expect(formatLabelSelector(parseLabelSelector(formattedText))).toBe(formattedText)
      }),
    )
  })

  it('throws no error other than a SelectorError', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'xy=!(), <>in') }), (text) => {
        try {
          parseLabelSelector(text)
        } catch (error) {
          expect(error).toHaveProperty('name', 'SelectorError')
        }
      }),
    )
  })
})

describe('matchesLabels', () => {
  it.each([
    ['', {}, true],
    ['x=a', { x: 'a' }, true],
    ['x=a', { x: 'b' }, false],
    ['x=a', {}, false],
    ['x=', { x: '' }, true],
    ['x=', {}, false],
    ['x!=a', { x: 'a' }, false],
    ['x!=a', { x: 'b' }, true],
    ['x!=a', {}, true],
    ['x in (a,b)', { x: 'b' }, true],
    ['x in (a,b)', {}, false],
    ['x notin (a,b)', { x: 'c' }, true],
    ['x notin (a,b)', { x: 'a' }, false],
    ['x notin (a,b)', {}, true],
    ['x', { x: '' }, true],
    ['x', {}, false],
    ['!x', {}, true],
    ['!x', { x: 'a' }, false],
    ['x>1', { x: '2' }, true],
    ['x>1', { x: '1' }, false],
    ['x>1', { x: '10' }, true],
    ['x<5', { x: '-7' }, true],
    ['x<5', { x: 'many' }, false],
    ['x<5', {}, false],
    ['x=a,y=b', { x: 'a', y: 'b' }, true],
    ['x=a,y=b', { x: 'a', y: 'c' }, false],
    ['toString', {}, false],
  ])('given selector %j and labels %j, returns %s', (text, labels, matches) => {
    expect(matchesLabels(parseLabelSelector(text), labels as Record<string, string>)).toBe(matches)
  })

  it('treats absent labels as empty labels', () => {
    expect(matchesLabels(parseLabelSelector('!x'), undefined)).toBe(true)
    expect(matchesLabels(parseLabelSelector('x'), null)).toBe(false)
  })
})

describe('labelSelectorFromObject', () => {
  it('returns NOTHING for an absent selector and EVERYTHING for an empty one', () => {
    expect(labelSelectorFromObject(undefined)).toBe(NOTHING)
    expect(matchesLabels(NOTHING, { x: 'a' })).toBe(false)
    expect(labelSelectorFromObject({})).toBe(EVERYTHING)
    expect(labelSelectorFromObject({ matchLabels: {}, matchExpressions: [] })).toBe(EVERYTHING)
    expect(matchesLabels(EVERYTHING, undefined)).toBe(true)
  })

  it('returns the same selector as parseLabelSelector', () => {
    const selector = labelSelectorFromObject({
      matchLabels: { tier: 'fast', app: 'web' },
      matchExpressions: [
        { key: 'zone', operator: 'In', values: ['b', 'a'] },
        { key: 'zone', operator: 'NotIn', values: ['c'] },
        { key: 'ready', operator: 'Exists' },
        { key: 'legacy', operator: 'DoesNotExist', values: [] },
      ],
    })
    expect(selector).toEqual(parseLabelSelector('app=web,!legacy,ready,tier=fast,zone in (a,b),zone notin (c)'))
  })

  it.each([
    [{ key: 'x', operator: 'Gt', values: ['1'] }, '"Gt" is not a valid label selector operator'],
    [{ key: 'x', operator: 'In', values: [] }, "values set can't be empty"],
    [{ key: 'x', operator: 'In' }, "values set can't be empty"],
    [{ key: 'x', operator: 'Exists', values: ['a'] }, 'values set must be empty'],
    [{ key: '', operator: 'Exists' }, 'invalid label key: ""'],
    [{ key: 'x', operator: 'In', values: ['a b'] }, 'invalid label value: "a b"'],
  ])('rejects %j', (expression, message) => {
    expect(() => labelSelectorFromObject({ matchExpressions: [expression] })).toThrow(message)
  })
})

describe('field selectors', () => {
  it.each([
    ['', []],
    ['metadata.name=a', [{ field: 'metadata.name', operator: '=', value: 'a' }]],
    ['a==b', [{ field: 'a', operator: '=', value: 'b' }]],
    ['a!=', [{ field: 'a', operator: '!=', value: '' }]],
    [
      'b=1,,a!=2',
      [
        { field: 'a', operator: '!=', value: '2' },
        { field: 'b', operator: '=', value: '1' },
      ],
    ],
    ['a=x\\,y\\=z\\\\', [{ field: 'a', operator: '=', value: 'x,y=z\\' }]],
    ['a=x\\,', [{ field: 'a', operator: '=', value: 'x,' }]],
    ['a=!b', [{ field: 'a', operator: '=', value: '!b' }]],
  ])('are parsed from %j', (text, requirements) => {
    expect(parseFieldSelector(text)).toEqual(requirements)
  })

  it.each([
    ['metadata.name', "invalid selector: 'metadata.name'; can't understand 'metadata.name'"],
    ['a=b=c', "unescaped character in value: '='"],
    ['a===b', "unescaped character in value: '='"],
    ['a=\\x', 'invalid escape sequence: \\x'],
    ['a=b\\', 'invalid escape sequence: \\'],
  ])('SYS-10 are rejected: %j', (text, message) => {
    expect(() => parseFieldSelector(text)).toThrow(message)
  })

  it('match on equality and treat a missing value as empty', () => {
    const fields = { 'metadata.name': 'a', 'status.phase': 'Bound' } as Record<string, string>
    const matches = (text: string) => matchesFields(parseFieldSelector(text), (field) => fields[field])
    expect(matches('metadata.name=a,status.phase!=Failed')).toBe(true)
    expect(matches('metadata.name=b')).toBe(false)
    expect(matches('status.phase!=Bound')).toBe(false)
    expect(matches('spec.nodeName=')).toBe(true)
    expect(matches('spec.nodeName!=')).toBe(false)
  })

  it('provide the required value of a field', () => {
    const requirements = parseFieldSelector('metadata.name=a,status.phase!=Failed')
    expect(requiredFieldValue(requirements, 'metadata.name')).toBe('a')
    expect(requiredFieldValue(requirements, 'status.phase')).toBeUndefined()
  })

  it('are preserved by formatting and parsing', () => {
    const anyRequirement = fc.record({
      field: fc.stringMatching(/^[a-z.]+$/),
      operator: fc.constantFrom('=' as const, '!=' as const),
      value: fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom('\\', ',', '=', '!', 'a') })),
    })
    fc.assert(
      fc.property(fc.array(anyRequirement), (requirements) => {
        const text = formatFieldSelector(requirements)
        const parsedRequirements = parseFieldSelector(text)
        expect(formatFieldSelector(parsedRequirements)).toBe(text)
        expect(parsedRequirements).toHaveLength(requirements.length)
        expect(parsedRequirements).toEqual(expect.arrayContaining(requirements))
      }),
    )
  })
})

const anyWord = fc.stringMatching(/^[a-z]([a-z0-9]{0,3}[a-z0-9])?$/)
const anyTerm = fc.oneof(
  fc
    .tuple(anyWord, fc.constantFrom('=', '==', '!='), fc.oneof(anyWord, fc.constant('')))
    .map((parts) => parts.join(' ')),
  fc.tuple(anyWord, fc.constantFrom('>', '<'), fc.nat()).map((parts) => parts.join('')),
  fc
    .tuple(anyWord, fc.constantFrom(' in', ' notin'), fc.array(anyWord))
    .map(([key, op, values]) => `${key}${op}(${values})`),
  fc.tuple(fc.constantFrom('', '!'), anyWord).map((parts) => parts.join('')),
)
const anyLabelSelector = fc.array(anyTerm).map((terms) => terms.join(','))
