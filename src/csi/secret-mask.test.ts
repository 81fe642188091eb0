import { encode } from 'node:querystring'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSecretMask, MASK } from './secret-mask.ts'

function maskOf(...values: string[]) {
  const mask = createSecretMask()
  mask.add(values)
  return mask
}

describe('createSecretMask', () => {
  const SECRET = 'hunter2 +/=&é"\\'
  const goQueryEscape = (text: string) => encode({ '': text }).slice(1).replaceAll('%20', '+')

  it.each([
    ['plain', SECRET],
    ['as JSON', JSON.stringify(SECRET).slice(1, -1)],
    ['as JSON in JSON', JSON.stringify(JSON.stringify(SECRET)).slice(3, -3)],
    ['percent-encoded', encodeURIComponent(SECRET)],
    ['percent-encoded in lower case', encodeURIComponent(SECRET).replace(/%../g, (hex) => hex.toLowerCase())],
    ['form-encoded', new URLSearchParams({ p: SECRET }).toString().slice(2)],
    ['query-encoded', goQueryEscape(SECRET)],
    ['in base64', Buffer.from(SECRET).toString('base64')],
    ['in base64 without padding', Buffer.from(SECRET).toString('base64').replace(/=+$/, '')],
    ['in base64 for URLs', Buffer.from(SECRET).toString('base64url')],
    ['in hexadecimal', Buffer.from(SECRET).toString('hex')],
  ])('PROV-16 masks a secret %s', (_form, encoded) => {
    expect(maskOf(SECRET).mask(`login with ${encoded} failed`)).toBe(`login with ${MASK} failed`)
  })

  it.each(['a:', 'ab:', 'abc:', ''])('PROV-16 masks a password in Basic credentials after %j', (user) => {
    const credentials = Buffer.from(`${user}correct horse battery staple`).toString('base64')
    const maskedText = maskOf('correct horse battery staple').mask(`Authorization: Basic ${credentials}`)
    // Only characters that also depend on the neighbours of the password remain.
    expect(maskedText).toMatch(/^Authorization: Basic .{0,6}\*\*\*.{0,3}$/)
  })

  it('PROV-16 masks single lines of a secret', () => {
    const key = '-----BEGIN-----\n  MIIEvQIBADANBg\r\n-----END-----\n'
    expect(maskOf(key).mask('line MIIEvQIBADANBg of the key')).toBe(`line ${MASK} of the key`)
  })

  it('PROV-16 masks overlapping secrets completely', () => {
    expect(maskOf('abcd1234', '1234wxyz').mask('(abcd1234wxyz)')).toBe(`(${MASK})`)
  })

  it('PROV-16 keeps values that are too short to be secret', () => {
    expect(maskOf('1', 'no').mask('try 1 of 3: no answer')).toBe('try 1 of 3: no answer')
  })

  it('PROV-16 drops the least recently sent value beyond 256 values', () => {
    const mask = maskOf(...Array.from({ length: 256 }, (_, index) => `value-${index}-`))
    mask.add(['value-0-', 'value-256-'])
    expect(mask.mask('value-0- value-1- value-2- value-256-')).toBe(`${MASK} value-1- ${MASK} ${MASK}`)
  })

  it('PROV-16 drops values beyond 1 MiB, but never the latest', () => {
    const mask = maskOf('first-value')
    const large = 'x'.repeat(2 * 1_048_576)
    mask.add([large])
    expect(mask.mask('first-value')).toBe('first-value')
    expect(mask.mask(large)).toBe(MASK)
  })

  it('PROV-16 removes secrets from any text', () => {
    // The values have no characters of the mask.
    const value = fc.stringMatching(/^[A-Z0-9+&%"\\]{4,20}$/)
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 5 }),
        fc.string(),
        fc.string(),
        (values, before, after) => {
          const text = values
            .map((secret) => `${before}${secret}${encodeURIComponent(secret)}${JSON.stringify(secret)}${after}`)
            .join(' ')
          const maskedText = maskOf(...values).mask(text)
          for (const secret of values) expect(maskedText).not.toContain(secret)
        },
      ),
    )
  })
})
