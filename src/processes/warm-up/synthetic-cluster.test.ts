import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { register } from 'prom-client'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { parseFeatureGates } from '../../api/feature-gates.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { loadOrCreatePki, type Pki } from '../../apiserver/index.ts'
import { createServerFixture } from '../../apiserver/server.fixture.ts'
import { systemClock } from '../../base/clock.ts'
import { withSyntheticCluster } from './synthetic-cluster.ts'

/** The time that the listener waits for connections when it stops. */
const DRAIN_MS = 10_000

describe('withSyntheticCluster', () => {
  const dir = mkdtempSync(join(tmpdir(), 'stowage-synthetic-'))
  let pki: Pki
  beforeAll(async () => {
    pki = await loadOrCreatePki({ dir: join(dir, 'pki'), clock: systemClock() })
    vi.stubEnv('TMPDIR', dir) // where the cluster creates its sockets
  })
  afterEach(() => expect(readdirSync(dir)).toEqual(['pki']))
  afterAll(() => {
    vi.unstubAllEnvs()
    rmSync(dir, { recursive: true })
  })
  const options = (signal = new AbortController().signal) => ({
    gates: parseFeatureGates(''),
    pki,
    clock: systemClock(),
    random: Math.random,
    signal,
    connections: 2,
  })

  it('provisions and binds each claim that its user creates', async () => {
    let slices = 0
    await withSyntheticCluster(options(), async (user) => {
      for (; slices < 3; slices++) await user.createClaims()
    })
    expect(slices).toBe(3)
  })

  it('changes neither the objects nor the metrics of a server in the same process', async () => {
    const { server, store, client } = await createServerFixture({ journal: 'own' })
    const metrics = async () =>
      (await server.metrics.registry.metrics())
        .split('\n')
        .filter((line) => !line.includes('process_'))
        .join('\n')
    const revision = store.revision
    const before = await metrics()
    await withSyntheticCluster(options(), (user) => user.createClaims())
    expect(store.revision).toBe(revision)
    expect((await client().list(persistentVolumeClaimKind)).items).toEqual([])
    expect(await metrics()).toBe(before)
    expect(register.getMetricsAsArray()).toEqual([]) // the registry that prom-client uses by default
  })

  it('keeps no file while its user works, so that a killed process leaves none', async () => {
    let files: string[] = []
    await withSyntheticCluster(options(), async () => {
      files = readdirSync(dir)
    })
    expect(files).toEqual(['pki'])
  })

  it('stops when the signal is aborted', async () => {
    const stop = new AbortController()
    const run = withSyntheticCluster(options(stop.signal), () => {
      stop.abort(new Error('the server stops'))
      return new Promise(() => {}) // would wait forever
    })
    await expect(run).rejects.toThrow('the server stops')
  })

  it('stops at once when the signal is aborted while its user connects', async () => {
    const stop = new AbortController()
    const base = systemClock()
    // Without the timer after which the listener closes connections, the test times out unless the user closes them.
    const after: typeof base.after = (ms, run) => (ms < DRAIN_MS ? base.after(ms, run) : () => {})
    const run = withSyntheticCluster({ ...options(stop.signal), clock: { ...base, after } }, async () => {})
    await vi.waitUntil(() => readdirSync(dir).length > 1) // the directory of its sockets
    stop.abort(new Error('the server stops'))
    await expect(run).rejects.toThrow('the server stops')
  })

  it('stops when the signal is aborted before it has started', async () => {
    await expect(
      withSyntheticCluster(options(AbortSignal.abort(new Error('the server stops'))), async () => {}),
    ).rejects.toThrow('the server stops')
  })
})
