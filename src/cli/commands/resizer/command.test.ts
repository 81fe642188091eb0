import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../base/manual-clock.ts'
import { createProgram } from '../../program.ts'
import { readResizerSettings } from './command.ts'

describe('stowage resizer flags', () => {
  const deps = { clock: manualClock(), random: () => 0.5, signal: new AbortController().signal, write: () => {} }
  /** Parses arguments like the command line does. */
  function parse(...args: string[]) {
    const command = createProgram(deps).commands.find((candidate) => candidate.name() === 'resizer')!
    const parser = new Command().exitOverride().configureOutput({ writeErr: () => {} })
    for (const option of command.options) parser.addOption(option)
    return readResizerSettings(parser.parse(args, { from: 'user' }).opts())
  }

  it('have the defaults of the upstream external-resizer', () => {
    expect(parse()).toMatchObject({
      csiAddress: '/run/csi/socket',
      timeout: 10_000,
      kubeApiQps: 5,
      kubeApiBurst: 10,
      workers: 10,
      retryIntervalStart: 1_000,
      retryIntervalMax: 300_000,
      handleVolumeInuseError: true,
      checkCapacity: false,
      leaderElection: false,
      leaderElectionLeaseDuration: 15_000,
      leaderElectionRenewDeadline: 10_000,
      leaderElectionRetryPeriod: 5_000,
      metricsPath: '/metrics',
      monitoring: undefined,
    })
  })

  it('accept the flags of the upstream external-resizer', () => {
    const settings = parse(
      ...['--csi-address=/csi/csi.sock', '--leader-election', '--workers=100', '--resync-period=5m', '--v=5'],
      ...['--handle-volume-inuse-error=false', '--feature-gates=AnnotateFsResize=true', '--http-endpoint=:8080'],
    )
    expect(settings).toMatchObject({ workers: 100, leaderElection: true, handleVolumeInuseError: false })
    expect(settings.monitoring).toMatchObject({ port: 8080 })
  })

  it('reject invalid values, flags that exclude each other, and changes of fixed gates', () => {
    expect(() => parse('--workers=none')).toThrow(/^--workers "none": expected a whole number of 1 or more$/)
    expect(() => parse('--http-endpoint=:1', '--metrics-address=:2')).toThrow(/not both/)
    expect(() => parse('--metrics-path=metrics')).toThrow(/--metrics-path/)
    expect(() => parse('--feature-gates=AnnotateFsResize=false')).toThrow(/always true here/)
  })
})
