import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../base/manual-clock.ts'
import { findIgnoredFlags } from '../../flags/ignored-flags.ts'
import { createProgram } from '../../program.ts'
import { runCommandLine } from '../../run.ts'
import { readProvisionerSettings } from './command.ts'

const deps = { clock: manualClock(), random: () => 0.5, signal: new AbortController().signal, write: () => {} }

/** Parses arguments like the command line does. */
function parse(...args: string[]) {
  const command = createProgram(deps).commands.find((candidate) => candidate.name() === 'provisioner')!
  const parser = new Command().exitOverride().configureOutput({ writeErr: () => {} })
  for (const option of command.options) parser.addOption(option)
  return readProvisionerSettings(parser.parse(args, { from: 'user' }).opts())
}

describe('stowage provisioner flags', () => {
  it('have the defaults of the upstream external-provisioner', () => {
    const { gates, ...settings } = parse()
    expect(settings).toEqual({
      csiAddress: '/run/csi/socket',
      timeout: 10_000,
      kubeconfig: '',
      master: '',
      kubeApiQps: 5,
      kubeApiBurst: 10,
      workerThreads: 100,
      retryIntervalStart: 1_000,
      retryIntervalMax: 300_000,
      volumeNamePrefix: 'pvc',
      volumeNameUuidLength: -1,
      strictTopology: false,
      immediateTopology: true,
      extraCreateMetadata: false,
      defaultFstype: '',
      controllerPublishReadonly: false,
      preventVolumeModeConversion: true,
      cloningProtectionThreads: 1,
      capacity: undefined,
      capacityForImmediateBinding: false,
      capacityOwnerrefLevel: 1,
      capacityPollInterval: 60_000,
      capacityThreads: 1,
      kubeApiCapacityBurst: 5,
      kubeApiCapacityQps: 1,
      snapshotOrphanSweepInterval: 300_000,
      provisionerSecretDir: '',
      nodeDeployment: false,
      nodeDeploymentImmediateBinding: true,
      nodeDeploymentBaseDelay: 20_000,
      nodeDeploymentMaxDelay: 60_000,
      leaderElection: false,
      leaderElectionNamespace: '',
      leaderElectionLeaseDuration: 15_000,
      leaderElectionRenewDeadline: 10_000,
      leaderElectionRetryPeriod: 5_000,
      metricsPath: '/metrics',
      monitoring: undefined,
      release: false,
    })
    expect(gates.enabled('VolumeAttributesClass') && gates.enabled('VolumeProvisionedIO')).toBe(true)
  })

  it('are accepted in the syntax of upstream deployments', () => {
    const settings = parse(
      ...['--csi-address=/csi/csi.sock', '--timeout=1m30s', '--leader-election', '--strict-topology=true'],
      ...[
        '--immediate-topology=false',
        '--kube-api-qps=-1',
        '--volume-name-uuid-length',
        '12',
        '--http-endpoint',
        ':8080',
      ],
      ...['--snapshot-orphan-sweep-interval=0', '--feature-gates=Topology=true,VolumeAttributesClass=false'],
    )
    expect(settings).toMatchObject({
      csiAddress: '/csi/csi.sock',
      timeout: 90_000,
      leaderElection: true,
      strictTopology: true,
      immediateTopology: false,
      kubeApiQps: -1,
      volumeNameUuidLength: 12,
      snapshotOrphanSweepInterval: 0,
      monitoring: { host: '0.0.0.0', port: 8080 },
    })
    expect(settings.gates.enabled('VolumeAttributesClass')).toBe(false)
  })

  it.each([
    [['--timeout', 'soon'], 'expected a duration such as'],
    [['--timeout', '0'], 'expected a duration'],
    [['--worker-threads', '0'], 'expected a whole number of 1 or more'],
    [['--worker-threads', '1.5'], 'expected a whole number'],
    [['--kube-api-qps', '0'], 'expected a number above 0, or -1'],
    [['--leader-election=maybe'], 'expected true or false'],
    [['--volume-name-uuid-length', '0'], 'expected -1, or 1 or more'],
    [['--volume-name-prefix='], 'expected a text that is not empty'],
    [['--http-endpoint', 'nowhere'], '--http-endpoint "nowhere": expected HOST:PORT'],
    [['--metrics-address', 'nowhere'], '--metrics-address "nowhere": expected HOST:PORT'],
    [['--http-endpoint', ':1', '--metrics-address', ':2'], 'not both'],
    [['--metrics-path', 'metrics'], 'expected a path'],
    [['--node-deployment', '--leader-election'], 'mutually exclusive'],
    [['--feature-gates', 'CrossNamespaceVolumeDataSource=true'], 'is always false here'],
    [['--feature-gates', 'Nope=true'], 'unknown feature gate "Nope"'],
    [['--feature-gates', 'AllAlpha=true'], 'unknown feature gate "AllAlpha"'],
    [['--leader-election-labels', 'team'], 'expected labels such as a:b,c:d'],
    [['--leader-election', '--leader-election-renew-deadline=20s'], 'the lease must be longer than the deadline'],
  ])('SYS-12 are rejected with the expected value: %j', (args, message) => {
    expect(() => parse(...args)).toThrowError(
      expect.objectContaining({ name: 'UsageError', message: expect.stringContaining(message) }),
    )
  })

  it.each([
    [['--provisioner-secret-dir', '/nonexistent-stowage'], 'Cannot read credentials from /nonexistent-stowage'],
    [['--kubeconfig', '/nonexistent-stowage'], 'Cannot use the kubeconfig /nonexistent-stowage'],
    // These are checked before the driver and the API server are contacted, and before the election.
    [['--leader-election', '--enable-capacity', 'central'], '--enable-capacity: set $NAMESPACE'],
    [['--master', 'http://127.0.0.1:1', '--node-deployment'], 'set $NODE_NAME'],
    [['--leader-election-resource-lock', 'endpoints'], "unknown option '--leader-election-resource-lock'"],
  ])('SYS-12 cause exit code 2: %j', async (args, message) => {
    let errorOutput = ''
    const code = await runCommandLine(['node', 'stowage', 'provisioner', '--log-level', 'silent', ...args], {
      ...deps,
      writeError: (text) => {
        errorOutput += text
      },
    })
    expect(code).toBe(2)
    expect(errorOutput).toContain(message)
  })

  it('may repeat gates, set labels, and include upstream flags and gates without effect', () => {
    const { gates, leaderElectionLabels } = parse(
      ...['--feature-gates=VolumeAttributesClass=false', '--feature-gates=HonorPVReclaimPolicy=true'],
      ...['--feature-gates=ContextualLogging=false,ReleaseLeaderElectionOnExit=false'],
      ...['--leader-election-labels=team:storage,app:csi', '--logtostderr', '--automaxprocs=true', '--enable-pprof'],
      ...['--vmodule=a=5', '--logging-format=json', '--log_dir', '/tmp', '--connection-timeout=15s'],
    )
    expect(gates.enabled('VolumeAttributesClass')).toBe(false)
    expect(leaderElectionLabels).toEqual({ team: 'storage', app: 'csi' })
  })

  it('are reported if they or their gates have no effect', () => {
    const flags = {
      logtostderr: true,
      log_dir: '/tmp',
      timeout: '5s',
      featureGates: 'Topology=true, ContextualLogging=true',
    }
    expect(findIgnoredFlags(flags)).toEqual(['--logtostderr', '--log_dir', '--feature-gates ContextualLogging=true'])
    expect(findIgnoredFlags({})).toEqual([])
  })

  it.each(['provisioner', 'resizer'])('%s prints its version, and accepts flags with one dash', async (name) => {
    const run = async (...args: string[]) => {
      let text = ''
      const write = (part: string) => {
        text += part
      }
      const code = await runCommandLine(['node', 'stowage', name, ...args], { ...deps, write, writeError: write })
      return { code, text }
    }
    expect(await run('--version')).toEqual({ code: 0, text: expect.stringMatching(/^\d+\.\d+/) })
    expect((await run('-v=5', '-kubeconfig=/nonexistent-stowage', '-log-level=silent')).text).toContain(
      'Cannot use the kubeconfig /nonexistent-stowage',
    )
  })

  it('CAP-20 accept true, false, central and local for --enable-capacity', () => {
    const parseCapacity = (flags: Record<string, unknown>) => readProvisionerSettings(flags).capacity
    expect(parseCapacity({ enableCapacity: true })).toBe('central')
    expect(parseCapacity({ enableCapacity: 'central' })).toBe('central')
    expect(parseCapacity({ enableCapacity: 'true', nodeDeployment: true })).toBe('local')
    expect(parseCapacity({ enableCapacity: 'local', nodeDeployment: true })).toBe('local')
    expect(parseCapacity({ enableCapacity: 'false' })).toBeUndefined()
    expect(() => parseCapacity({ enableCapacity: 'local' })).toThrow('requires --node-deployment')
    expect(() => parseCapacity({ enableCapacity: 'central', nodeDeployment: true })).toThrow('mutually exclusive')
    expect(() => parseCapacity({ enableCapacity: 'some' })).toThrow('expected true, false, central or local')
  })
})
