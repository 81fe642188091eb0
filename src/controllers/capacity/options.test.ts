import { describe, expect, it } from 'vitest'
import { parseEnableCapacity, settingsOf } from './options.ts'

describe('--enable-capacity', () => {
  it.each([
    ['false', false, undefined],
    ['false', true, undefined],
    ['true', false, 'central'],
    ['true', true, 'local'],
    ['True', false, 'central'],
    ['central', true, 'central'],
    ['local', false, 'local'],
  ])('CAP-20 with the value %s and node deployment %s selects the mode %s', (text, nodeDeployment, mode) => {
    expect(parseEnableCapacity(text, { nodeDeployment })).toBe(mode)
  })

  it('CAP-20 rejects any other value', () => {
    expect(() => parseEnableCapacity('yes', { nodeDeployment: false })).toThrow(
      'expected false, true, central or local, not "yes"',
    )
  })
})

describe('the settings of a producer', () => {
  it('default to those of external-provisioner', () => {
    expect(settingsOf({ namespace: 'kube-system' })).toMatchObject({
      pollIntervalMs: 60_000,
      workers: 1,
      timeoutMs: 10_000,
      immediateBinding: false,
      backoff: { baseMs: 1_000, maxMs: 300_000 },
    })
  })

  it('require a namespace', () => {
    expect(() => settingsOf({ namespace: '' })).toThrow(/Set \$NAMESPACE/)
  })
})
