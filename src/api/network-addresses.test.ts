import { describe, expect, it } from 'vitest'
import { FieldErrors } from './field-errors.ts'
import { ipFamilyOf, validateCIDR, validateIP } from './network-addresses.ts'

const isValid = (rule: (text: string, field: string, errors: FieldErrors) => void, text: string) => {
  const errors = new FieldErrors()
  rule(text, 'x', errors)
  return !errors.any
}

describe('network addresses', () => {
  it.each([
    ['10.0.0.1', true],
    ['2001:db8::1', true],
    ['10.0.0.256', false],
    ['fe80::1%eth0', false],
    ['', false],
  ])('%s is a valid IP address: %s', (text, valid) => expect(isValid(validateIP, text)).toBe(valid))

  it.each([
    ['10.0.0.0/24', true],
    ['2001:db8::/64', true],
    ['10.0.0.0/33', false],
    ['2001:db8::/129', false],
    ['10.0.0.0', false],
    ['10.0.0.0/', false],
    ['10.0.0.0/24/1', false],
    ['10.0.0.0/-1', false],
  ])('%s is a valid CIDR: %s', (text, valid) => expect(isValid(validateCIDR, text)).toBe(valid))

  it('have an IP family', () => {
    expect(['10.0.0.0/24', '::1', 'here'].map(ipFamilyOf)).toEqual([4, 6, 0])
  })
})
