import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { redactCredentials } from './redact-credentials.ts'

describe('redactCredentials', () => {
  it('PROV-16 removes plain and encoded credentials', () => {
    const credentials = { password: 'hunter2!', key: '-----BEGIN-----\nMIIEvQIBADANBg\n-----END-----\n', n: '1' }
    const text = [
      'login failed: hunter2!',
      `Basic ${Buffer.from('hunter2!').toString('base64')}`,
      'url https://x/?p=hunter2!',
      'line MIIEvQIBADANBg of the key',
      'try 1 of 3',
    ].join('; ')
    const redacted = redactCredentials(text, credentials)
    expect(redacted).not.toContain('hunter2')
    expect(redacted).not.toContain('aHVudGVyMi')
    expect(redacted).not.toContain('MIIEvQ')
    expect(redacted).toContain('try 1 of 3')
  })

  it('PROV-16 removes any credential from any text', () => {
    // The values have no letters of the replacement text.
    const value = fc.stringMatching(/^[A-Z0-9+&%"\\]{4,20}$/)
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 5 }),
        fc.string(),
        fc.string(),
        (values, before, after) => {
          const credentials = Object.fromEntries(values.map((secret, i) => [`k${i}`, secret]))
          const text = values
            .map((secret) => `${before}${secret}${encodeURIComponent(secret)}${JSON.stringify(secret)}${after}`)
            .join(' ')
          const redacted = redactCredentials(text, credentials)
          for (const secret of values) expect(redacted).not.toContain(secret)
        },
      ),
    )
  })
})
