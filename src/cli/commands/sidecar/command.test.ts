import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../base/manual-clock.ts'
import { findIgnoredFlags } from '../../flags/ignored-flags.ts'
import { createProgram } from '../../program.ts'
import { runCommandLine } from '../../run.ts'
import { IGNORED_FLAGS } from './flags.ts'
import { readSidecarSettings } from './settings.ts'

const deps = { clock: manualClock(), random: () => 0.5, signal: new AbortController().signal, write: () => {} }

/** Parses arguments like the command line does. */
function parseArgs(args: readonly string[]): Record<string, unknown> {
  const command = createProgram(deps).commands.find((candidate) => candidate.name() === 'sidecar')!
  const parser = new Command().exitOverride().configureOutput({ writeErr: () => {} })
  for (const option of command.options) parser.addOption(option)
  return parser.parse(args, { from: 'user' }).opts()
}
const parse = (...args: string[]) => readSidecarSettings(parseArgs(args))

/** Runs the command line, and returns its exit code and standard error. The flags are read before the driver is called. */
async function run(...args: string[]) {
  let err = ''
  const writeError = (text: string) => {
    err += text
  }
  return { code: await runCommandLine(['node', 'stowage', 'sidecar', ...args], { ...deps, writeError }), err }
}

/** The arguments of external-provisioner, external-resizer and external-attacher in deployments of upstream drivers. */
const PROVISIONER = [
  '--csi-address=/csi/csi.sock',
  '--feature-gates=Topology=true',
  '--feature-gates=VolumeAttributesClass=true',
  '--extra-create-metadata',
  '--leader-election=true',
  '--default-fstype=ext4',
  '--kube-api-qps=20',
  '--kube-api-burst=100',
  '--worker-threads=100',
  '--retry-interval-max=30m',
  '--enable-capacity',
  '--capacity-ownerref-level=2',
  '--strict-topology',
  '--automaxprocs',
  '--v=5',
]
const RESIZER = [
  '--workers=100',
  '--handle-volume-inuse-error=false',
  '--feature-gates=AnnotateFsResize=true',
  '--resync-period=5m',
  '--logtostderr',
]
const ATTACHER = [
  '--reconcile-sync=30s',
  '--max-entries=500',
  '--resync=10m',
  '--max-grpc-log-length=100',
  '--feature-gates=MutableCSINodeAllocatableCount=true',
]

describe('stowage sidecar flags', () => {
  it('PLUS-5 of external-provisioner, external-resizer and external-attacher are accepted, and configure the controllers', () => {
    const settings = parse(...PROVISIONER, ...RESIZER, ...ATTACHER)
    expect(settings).toMatchObject({
      csiAddress: '/csi/csi.sock',
      kubeApiQps: 20,
      leaderElection: true,
      holdUpstreamLeases: false,
      provisioner: { workerThreads: 100, extraCreateMetadata: true, strictTopology: true, capacity: 'central' },
      workerBudget: 100,
      resizer: { workers: 100, handleVolumeInuseError: false, retryIntervalMax: 1_800_000 },
      attacher: { workers: 100, syncIntervalMs: 30_000, listEntriesMax: 500, defaultFsType: 'ext4' },
    })
  })

  it('PLUS-5 default to the upstream timeouts and to no request limit', () => {
    const settings = parse()
    expect(settings.kubeApiQps).toBe(-1)
    expect(settings.provisioner.timeout).toBe(10_000)
    expect(settings.resizer).toMatchObject({ timeout: 10_000, workers: 10 })
    expect(settings.attacher).toEqual({
      timeoutMs: 15_000,
      workers: 100,
      retryIntervalStartMs: 1_000,
      retryIntervalMaxMs: 300_000,
      defaultFsType: '',
      syncIntervalMs: 60_000,
    })
  })

  it('PLUS-5 with the prefix of a controller override the common value for that controller', () => {
    const settings = parse(
      ...['--timeout=1m', '--attacher-timeout=6m', '--worker-threads=50', '--attacher-worker-threads=5'],
      ...['--retry-interval-start=2s', '--resizer-retry-interval-start=3s', '--provisioner-retry-interval-max=9m'],
    )
    expect(settings.provisioner).toMatchObject({
      timeout: 60_000,
      workerThreads: 50,
      retryIntervalStart: 2_000,
      retryIntervalMax: 540_000,
    })
    expect(settings.resizer).toMatchObject({ timeout: 60_000, retryIntervalStart: 3_000, retryIntervalMax: 300_000 })
    expect(settings.attacher).toMatchObject({ timeoutMs: 360_000, workers: 5, retryIntervalStartMs: 2_000 })
  })

  it('PLUS-5 without an effect are accepted, and listed for the log', () => {
    expect(findIgnoredFlags(parseArgs([...PROVISIONER, ...RESIZER, ...ATTACHER]), IGNORED_FLAGS)).toEqual([
      '--automaxprocs',
      '--logtostderr',
      '--resync-period',
      '--resync',
      '--max-grpc-log-length',
    ])
  })

  it('PLUS-5 are accepted with one dash, as in Go', async () => {
    expect(await run('-csi-address=/csi/csi.sock', '-leader-election', '-v=5', '-attacher-timeout=none')).toMatchObject(
      {
        code: 2,
        err: expect.stringContaining('--attacher-timeout "none": expected a duration'),
      },
    )
  })

  it('are rejected if they are unknown or mutually exclusive, or name unknown gates or controllers', async () => {
    expect(await run('--snapshot-name-prefix=x')).toMatchObject({
      code: 2,
      err: expect.stringContaining("unknown option '--snapshot-name-prefix=x'"),
    })
    expect((await run('--feature-gates=Sidecars=true')).err).toContain('unknown feature gate "Sidecars"')
    expect((await run('--feature-gates=Topology=false')).err).toContain('Topology is always true here')
    expect((await run('--controllers=snapshotter')).err).toContain('unknown controller "snapshotter"')
    expect((await run('--node-deployment', '--leader-election')).err).toContain('mutually exclusive')
    expect((await run('--http-endpoint=:1', '--metrics-address=:2')).err).toContain('not both')
  })
})
