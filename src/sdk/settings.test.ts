import { describe, expect, it } from 'vitest'
import { formatHelp, readSettings } from './settings.ts'

describe('readSettings', () => {
  it('prefers flags to options in code', () => {
    const options = { workerThreads: 5, volumeNamePrefix: 'vol' }
    const args = ['--worker-threads=7', '--retry-interval-max', '1m30s', '--leader-election=false']
    expect(readSettings(options, args)).toEqual({
      workerThreads: 7,
      volumeNamePrefix: 'vol',
      retryIntervalMaxMs: 90_000,
      leaderElection: false,
    })
  })

  it('reads a boolean flag without a value as true', () => {
    expect(readSettings({ leaderElection: false }, ['--leader-election'])).toEqual({ leaderElection: true })
  })

  const INVALID_ARGS: [string[], string][] = [
    [['--worker-threads=0'], '--worker-threads "0": expected a positive integer'],
    [['--timeout=soon'], '--timeout "soon": expected a positive duration'],
    [['--leader-election=maybe'], 'expected true or false'],
    [['--log-level=loud'], 'expected one of debug, info'],
    [['--kubeconfig='], 'expected a non-empty string'],
    [['--speed=1'], "Unknown option '--speed'. --help lists the flags."],
    [['extra'], '--help lists the flags'],
  ]
  for (const [args, message] of INVALID_ARGS) {
    it(`rejects ${args.join(' ')} with a message`, () => {
      expect(() => readSettings({}, args)).toThrow(message)
    })
  }

  it('returns a request for help if --help is set', () => {
    expect(readSettings({}, ['--help'])).toEqual({ help: true })
  })
})

describe('formatHelp', () => {
  it('lists flags', () => {
    for (const flag of ['--kubeconfig', '--http-endpoint', '--retry-interval-start', '--volume-name-prefix']) {
      expect(formatHelp('example.com/p')).toContain(flag)
    }
  })
})
