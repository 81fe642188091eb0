import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseDuration } from '../base/duration.ts'
import { helpText, readSettings } from './settings.ts'

describe('the settings of a provisioner', () => {
  it('PROV-17 flags override options in code', () => {
    const options = { workerThreads: 5, volumeNamePrefix: 'vol' }
    const args = ['--worker-threads=7', '--retry-interval-max', '1m30s', '--leader-election=false']
    expect(readSettings(options, args)).toEqual({
      workerThreads: 7,
      volumeNamePrefix: 'vol',
      retryIntervalMaxMs: 90_000,
      leaderElection: false,
    })
  })

  it('PROV-17 a boolean flag without value is true', () => {
    expect(readSettings({ leaderElection: false }, ['--leader-election'])).toEqual({ leaderElection: true })
  })

  const WRONG: [string[], string][] = [
    [['--worker-threads=0'], '--worker-threads "0": expected a whole number above 0'],
    [['--timeout=soon'], '--timeout "soon": expected a duration'],
    [['--leader-election=maybe'], 'expected true or false'],
    [['--log-level=loud'], 'expected debug, info'],
    [['--kubeconfig='], 'expected a text that is not empty'],
    [['--speed=1'], "Unknown option '--speed'. --help lists the flags."],
    [['extra'], '--help lists the flags'],
  ]
  for (const [args, message] of WRONG) {
    it(`PROV-17 refuses ${args.join(' ')} and names the expected value`, () => {
      expect(() => readSettings({}, args)).toThrow(message)
    })
  }

  it('PROV-17 --help names every flag', () => {
    expect(readSettings({}, ['--help'])).toEqual({ help: true })
    for (const flag of ['--kubeconfig', '--http-endpoint', '--retry-interval-start', '--volume-name-prefix']) {
      expect(helpText('example.com/p')).toContain(flag)
    }
  })
})

describe('a duration', () => {
  it('PROV-17 is a sum of counts with units', () => {
    expect(parseDuration('1h2m3s4ms')).toBe(3_723_004)
    expect(parseDuration('1.5s')).toBe(1_500)
  })

  it('PROV-17 round-trips, and rejects everything else', () => {
    const part = fc.tuple(fc.nat(10_000), fc.constantFrom(['ms', 1], ['s', 1_000], ['m', 60_000], ['h', 3_600_000]))
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 4 }), (parts) => {
        const text = parts.map(([count, [unit]]) => `${count}${unit}`).join('')
        expect(parseDuration(text)).toBe(parts.reduce((sum, [count, [, ms]]) => sum + count * Number(ms), 0))
      }),
    )
    for (const text of ['', '5', 's', '-1s', '1d', '1s ', '1 s', 'one']) expect(parseDuration(text)).toBeUndefined()
  })
})
