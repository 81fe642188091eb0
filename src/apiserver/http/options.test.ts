import { describe, expect, it } from 'vitest'
import { parseDeleteOptions, parseGetVersion, parseListOptions, parseWriteOptions } from './options.ts'

const parseList = (query: string) => parseListOptions(new URLSearchParams(query), false)
const parseWatch = (query: string) => parseListOptions(new URLSearchParams(query), true)
const invalidFields = (...fields: string[]) =>
  expect.objectContaining({
    code: 422,
    reason: 'Invalid',
    details: expect.objectContaining({ causes: fields.map((field) => expect.objectContaining({ field })) }),
  })
const badRequest = expect.objectContaining({ code: 400, reason: 'BadRequest' })

describe('parseListOptions for a list', () => {
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
    expect(() => parseList(query)).not.toThrow()
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
    expect(() => parseList(query)).toThrow(invalidFields(field))
  })

  it.each(['continue=abc&resourceVersion=5', 'limit=many', 'limit=1e3', 'labelSelector=%3D%3D', 'fieldSelector=a'])(
    'SYS-10 rejects %j with 400',
    (query) => {
      expect(() => parseList(query)).toThrow(badRequest)
    },
  )

  it('clamps a negative or very large limit', () => {
    expect(parseList('limit=-5').limit).toBe(0)
    expect(parseList('limit=999999999999').limit).toBe(2 ** 31)
  })
})

describe('parseListOptions for a watch', () => {
  it.each([
    '',
    'resourceVersion=5',
    'resourceVersionMatch=NotOlderThan&sendInitialEvents=true',
    'resourceVersionMatch=NotOlderThan&sendInitialEvents=false&resourceVersion=5',
  ])('accepts %j', (query) => {
    expect(() => parseWatch(query)).not.toThrow()
  })

  it.each([
    ['resourceVersionMatch=Exact&sendInitialEvents=true&resourceVersion=5', 'resourceVersionMatch'],
    ['resourceVersionMatch=NotOlderThan', 'resourceVersionMatch'],
    ['sendInitialEvents=true', 'resourceVersionMatch'],
    ['resourceVersion=x', 'resourceVersion'],
  ])('SYS-10 rejects %j with 422 on %s', (query, field) => {
    expect(() => parseWatch(query)).toThrow(invalidFields(field))
  })

  it('ignores a continue token', () => {
    expect(parseWatch('continue=abc').continueToken).toBe('')
  })
})

describe('parseGetVersion', () => {
  it('returns the minimum resourceVersion, 0 by default', () => {
    expect(parseGetVersion(new URLSearchParams('resourceVersion=7'))).toBe(7)
    expect(parseGetVersion(new URLSearchParams())).toBe(0)
  })

  it('rejects an invalid resourceVersion', () => {
    expect(() => parseGetVersion(new URLSearchParams('resourceVersion=new'))).toThrow(invalidFields('resourceVersion'))
  })
})

describe('parseWriteOptions', () => {
  const parseWrite = (query: string, userAgent?: string) =>
    parseWriteOptions('CreateOptions', new URLSearchParams(query), userAgent)

  it('defaults to fieldValidation Warn and no dry run', () => {
    expect(parseWrite('', 'kubectl/v1.33.1 (linux/amd64)')).toEqual({
      dryRun: false,
      fieldManager: 'kubectl',
      fieldValidation: 'Warn',
      force: false,
    })
  })

  it('returns the values of the query', () => {
    expect(parseWrite('dryRun=All&fieldValidation=Strict&fieldManager=me')).toMatchObject({
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
    expect(() => parseWrite(query)).toThrow(invalidFields(field))
  })
})

describe('parseDeleteOptions', () => {
  const noQuery = new URLSearchParams()

  it('reads the body, or the query if there is no body', () => {
    const body = {
      kind: 'DeleteOptions',
      propagationPolicy: 'Foreground',
      preconditions: { uid: 'u', resourceVersion: '7' },
    }
    expect(parseDeleteOptions(body, noQuery)).toMatchObject({
      propagationPolicy: 'Foreground',
      uid: 'u',
      resourceVersion: '7',
    })
    expect(
      parseDeleteOptions(undefined, new URLSearchParams('propagationPolicy=Orphan&gracePeriodSeconds=5')),
    ).toMatchObject({
      propagationPolicy: 'Orphan',
      gracePeriodSeconds: 5,
    })
  })

  it('supports the deprecated orphanDependents', () => {
    expect(parseDeleteOptions({ orphanDependents: true }, noQuery).propagationPolicy).toBe('Orphan')
    expect(parseDeleteOptions({ orphanDependents: false }, noQuery).propagationPolicy).toBe('Background')
  })

  it('treats a negative grace period as one second', () => {
    expect(parseDeleteOptions({ gracePeriodSeconds: -10 }, noQuery).gracePeriodSeconds).toBe(1)
  })

  it('SYS-10 rejects invalid options', () => {
    expect(() => parseDeleteOptions({ propagationPolicy: 'Explode' }, noQuery)).toThrow(
      invalidFields('propagationPolicy'),
    )
    expect(() => parseDeleteOptions({ propagationPolicy: 'Orphan', orphanDependents: true }, noQuery)).toThrow(
      invalidFields('propagationPolicy'),
    )
    expect(() => parseDeleteOptions({ dryRun: ['Some'] }, noQuery)).toThrow(invalidFields('dryRun'))
    for (const body of [
      [],
      'text',
      { kind: 'Pod' },
      { gracePeriodSeconds: 'soon' },
      { preconditions: 7 },
      { preconditions: { uid: 7 } },
    ]) {
      expect(() => parseDeleteOptions(body, noQuery)).toThrow(badRequest)
    }
  })
})
