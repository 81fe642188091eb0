import { describe, expect, it } from 'vitest'
import * as der from './der.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const ascii = (bytes: Uint8Array) => Buffer.from(bytes.subarray(2)).toString('ascii')

describe('der', () => {
  it('encodes object identifiers in base 128', () => {
    expect(hex(der.objectId('1.2.840.10045.4.3.2'))).toBe('06082a8648ce3d040302')
    expect(hex(der.objectId('2.5.29.17'))).toBe('0603551d11')
  })

  it('encodes integers as non-negative, without superfluous zeros', () => {
    expect(hex(der.integer(Uint8Array.of(0)))).toBe('020100')
    expect(hex(der.integer(Uint8Array.of(0, 0, 0x7f)))).toBe('02017f')
    expect(hex(der.integer(Uint8Array.of(0x80)))).toBe('02020080')
    expect(hex(der.integer(Uint8Array.of(0, 0x80)))).toBe('02020080')
  })

  it('encodes short lengths in one byte, and long lengths after the number of their bytes', () => {
    expect(hex(der.octetString(new Uint8Array(127)).subarray(0, 2))).toBe('047f')
    expect(hex(der.octetString(new Uint8Array(128)).subarray(0, 3))).toBe('048180')
    expect(hex(der.octetString(new Uint8Array(300)).subarray(0, 4))).toBe('0482012c')
  })

  it('encodes a time in 2049 with a two-digit year and a time in 2050 with a four-digit year', () => {
    expect(ascii(der.time(Date.UTC(2049, 11, 31, 23, 59, 59, 999)))).toBe('491231235959Z')
    expect(der.time(Date.UTC(2049, 11, 31))[0]).toBe(0x17)
    expect(ascii(der.time(Date.UTC(2050, 0, 1)))).toBe('20500101000000Z')
    expect(der.time(Date.UTC(2050, 0, 1))[0]).toBe(0x18)
  })

  it.each([
    ['10.0.0.1', '0a000001'],
    ['::', '00000000000000000000000000000000'],
    ['::1', '00000000000000000000000000000001'],
    ['fe80::', 'fe800000000000000000000000000000'],
    ['2001:db8::ff:1', '20010db8000000000000000000ff0001'],
    ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008'],
    ['::ffff:1.2.3.4', '00000000000000000000ffff01020304'],
  ])('encodes the address %s as %s', (address, bytes) => {
    expect(hex(der.ipAddressBytes(address))).toBe(bytes)
  })
})
