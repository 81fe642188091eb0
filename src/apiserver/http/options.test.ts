import { describe, expect, it } from 'vitest'
import { parseDeleteOptions, parseGetVersion, parseListOptions, parseWriteOptions } from './options.ts'

const listing = (query: string) => parseListOptions(new URLSearchParams(query), false)
const watching = (query: string) => parseListOptions(new URLSearchParams(query), true)
const invalid = (...fields: string[]) =>
  expect.objectContaining({
    code: 422,
    reason: 'Invalid',
    details: expect.objectContaining({ causes: fields.map((field) => expect.objectContaining({ field })) }),
  })
const badRequest = expect.objectContaining({ code: 400, reason: 'BadRequest' })

describe('options of a list', () => {
  it.each([
    '',
    'resourceVersion=',
    'resourceVersion=0',
    'resourceVersion=5',
    'resourceVersion=5&resourceVersionMatch=Exact',
    'resourceVersion=0&resourceVersionMatch=NotOlderThan',
    'limit=1&continue=abc',
    'limit=1&continue=abc&resourceVersion=0',
  ])('accepts %j', (query) => {
    expect(() => listing(query)).not.toThrow()
  })

  it.each([
    ['resourceVersionMatch=Exact', 'resourceVersionMatch'],
    ['resourceVersionMatch=NotOlderThan', 'resourceVersionMatch'],
    ['resourceVersion=0&resourceVersionMatch=Exact', 'resourceVersionMatch'],
    ['resourceVersion=5&resourceVersionMatch=Sometimes', 'resourceVersionMatch'],
    ['resourceVersion=5&resourceVersionMatch=Exact&continue=abc', 'resourceVersionMatch'],
    ['sendInitialEvents=true', 'sendInitialEvents'],
    ['resourceVersion=abc', 'resourceVersion'],
    ['resourceVersion=-1', 'resourceVersion'],
    ['resourceVersion=1.5', 'resourceVersion'],
    ['resourceVersion=99999999999999999999', 'resourceVersion'],
  ])('SYS-10 rejects %j with 422 on %s', (query, field) => {
    expect(() => listing(query)).toThrow(invalid(field))
  })

  it.each(['continue=abc&resourceVersion=5', 'limit=many', 'limit=1e3', 'labelSelector=%3D%3D', 'fieldSelector=a'])(
    'SYS-10 refuses %j with 400',
    (query) => {
      expect(() => listing(query)).toThrow(badRequest)
    },
  )

  it('clamps a negative or very large limit', () => {
    expect(listing('limit=-5').limit).toBe(0)
    expect(listing('limit=999999999999').limit).toBe(2 ** 31)
  })
})

describe('options of a watch', () => {
  it.each([
    '',
    'resourceVersion=5',
    'resourceVersionMatch=NotOlderThan&sendInitialEvents=true',
    'resourceVersionMatch=NotOlderThan&sendInitialEvents=false&resourceVersion=5',
  ])('accepts %j', (query) => {
    expect(() => watching(query)).not.toThrow()
  })

  it.each([
    ['resourceVersionMatch=Exact&sendInitialEvents=true&resourceVersion=5', 'resourceVersionMatch'],
    ['resourceVersionMatch=NotOlderThan', 'resourceVersionMatch'],
    ['sendInitialEvents=true', 'resourceVersionMatch'],
    ['resourceVersion=x', 'resourceVersion'],
  ])('SYS-10 rejects %j with 422 on %s', (query, field) => {
    expect(() => watching(query)).toThrow(invalid(field))
  })

  it('ignores a continue token', () => {
    expect(watching('continue=abc').continueToken).toBe('')
  })
})

describe('options of a get', () => {
  it('has a minimum resourceVersion', () => {
    expect(parseGetVersion(new URLSearchParams('resourceVersion=7'))).toBe(7)
    expect(parseGetVersion(new URLSearchParams())).toBe(0)
    expect(() => parseGetVersion(new URLSearchParams('resourceVersion=new'))).toThrow(invalid('resourceVersion'))
  })
})

describe('options of a write', () => {
  const writing = (query: string, userAgent?: string) =>
    parseWriteOptions('CreateOptions', new URLSearchParams(query), userAgent)

  it('default to fieldValidation Warn and no dry run', () => {
    expect(writing('', 'kubectl/v1.33.1 (linux/amd64)')).toEqual({
      dryRun: false,
      fieldManager: 'kubectl',
      fieldValidation: 'Warn',
      force: false,
    })
    expect(writing('dryRun=All&fieldValidation=Strict&fieldManager=me')).toMatchObject({
      dryRun: true,
      fieldManager: 'me',
      fieldValidation: 'Strict',
    })
  })

  it.each([
    ['dryRun=Some', 'dryRun'],
    ['fieldValidation=Maybe', 'fieldValidation'],
    [`fieldManager=${'x'.repeat(129)}`, 'fieldManager'],
    ['fieldManager=a%0Ab', 'fieldManager'],
  ])('SYS-10 rejects %s with 422', (query, field) => {
    expect(() => writing(query)).toThrow(invalid(field))
  })
})

describe('options of a delete', () => {
  const none = new URLSearchParams()

  it('come from the body, or from the query if there is no body', () => {
    const body = {
      kind: 'DeleteOptions',
      propagationPolicy: 'Foreground',
      preconditions: { uid: 'u', resourceVersion: '7' },
    }
    expect(parseDeleteOptions(body, none)).toMatchObject({ propagation: 'Foreground', uid: 'u', resourceVersion: '7' })
    expect(
      parseDeleteOptions(undefined, new URLSearchParams('propagationPolicy=Orphan&gracePeriodSeconds=5')),
    ).toMatchObject({
      propagation: 'Orphan',
      gracePeriodSeconds: 5,
    })
  })

  it('support the older orphanDependents', () => {
    expect(parseDeleteOptions({ orphanDependents: true }, none).propagation).toBe('Orphan')
    expect(parseDeleteOptions({ orphanDependents: false }, none).propagation).toBe('Background')
  })

  it('treat a negative grace period as one second', () => {
    expect(parseDeleteOptions({ gracePeriodSeconds: -10 }, none).gracePeriodSeconds).toBe(1)
  })

  it('SYS-10 are rejected if they are invalid', () => {
    expect(() => parseDeleteOptions({ propagationPolicy: 'Explode' }, none)).toThrow(invalid('propagationPolicy'))
    expect(() => parseDeleteOptions({ propagationPolicy: 'Orphan', orphanDependents: true }, none)).toThrow(
      invalid('propagationPolicy'),
    )
    expect(() => parseDeleteOptions({ dryRun: ['Some'] }, none)).toThrow(invalid('dryRun'))
    for (const body of [
      [],
      'text',
      { kind: 'Pod' },
      { gracePeriodSeconds: 'soon' },
      { preconditions: 7 },
      { preconditions: { uid: 7 } },
    ]) {
      expect(() => parseDeleteOptions(body, none)).toThrow(badRequest)
    }
  })
})
