import { describe, expect, it } from 'vitest'
import { FieldErrors } from './field-errors.ts'
import { ipFamilyOf, validateCIDR, validateIP } from './network-addresses.ts'

const isValid = (validate: (text: string, field: string, errors: FieldErrors) => void, text: string) => {
  const errors = new FieldErrors()
  validate(text, 'spec.address', errors)
  return !errors.hasErrors
}

describe('validateIP', () => {
  it.each([
    ['10.0.0.1', true],
    ['2001:db8::1', true],
    ['10.0.0.256', false],
    ['fe80::1%eth0', false],
    ['', false],
  ])('accepts %j: %s', (text, expected) => expect(isValid(validateIP, text)).toBe(expected))
})

describe('validateCIDR', () => {
  it.each([
    ['10.0.0.0/24', true],
    ['2001:db8::/64', true],
    ['10.0.0.0/33', false],
    ['2001:db8::/129', false],
    ['10.0.0.0', false],
    ['10.0.0.0/', false],
    ['10.0.0.0/24/1', false],
    ['10.0.0.0/-1', false],
  ])('accepts %j: %s', (text, expected) => expect(isValid(validateCIDR, text)).toBe(expected))
})

it('ipFamilyOf returns the family of an address or CIDR and 0 for other text', () => {
  expect(['10.0.0.0/24', '::1', 'localhost'].map(ipFamilyOf)).toEqual([4, 6, 0])
})
