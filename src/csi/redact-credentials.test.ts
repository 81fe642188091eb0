import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { redactCredentials } from './redact-credentials.ts'

describe('redactCredentials', () => {
  it('PROV-16 removes every credential, encoded or not', () => {
    const credentials = { password: 'hunter2!', key: '-----BEGIN-----\nMIIEvQIBADANBg\n-----END-----\n', n: '1' }
    const text = [
      'login failed: hunter2!',
      `Basic ${Buffer.from('hunter2!').toString('base64')}`,
      'url https://x/?p=hunter2!',
      'line MIIEvQIBADANBg of the key',
      'try 1 of 3',
    ].join('; ')
    const cleaned = redactCredentials(text, credentials)
    expect(cleaned).not.toContain('hunter2')
    expect(cleaned).not.toContain('aHVudGVyMi')
    expect(cleaned).not.toContain('MIIEvQ')
    expect(cleaned).toContain('try 1 of 3')
  })

  it('PROV-16 leaves no value in the text', () => {
    // Values without the letters of the replacement text.
    const value = fc.stringMatching(/^[A-Z0-9+&%"\\]{4,20}$/)
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 5 }),
        fc.string(),
        fc.string(),
        (values, before, after) => {
          const credentials = Object.fromEntries(values.map((one, i) => [`k${i}`, one]))
          const text = values
            .map((one) => `${before}${one}${encodeURIComponent(one)}${JSON.stringify(one)}${after}`)
            .join(' ')
          const cleaned = redactCredentials(text, credentials)
          for (const one of values) expect(cleaned).not.toContain(one)
        },
      ),
    )
  })
})
