// Runs `stowage unused` against an API server on a port. One test compares the output with docs/how-to/space.md.
import { beforeEach, describe, expect, it } from 'vitest'
import type { Json } from '../../../apiserver/server.fixture.ts'
import { systemClock } from '../../../base/clock.ts'
import { startProgramFixture } from '../../program.fixture.ts'
import { runCommandLine } from '../../run.ts'
import { expectPage } from '../../space/space-page.fixture.ts'

const STORAGE = '/apis/storage.k8s.io/v1'
const DRIVER = 'local.csi.stowage.dev'
const DAY_MS = 86_400_000

let program: Awaited<ReturnType<typeof startProgramFixture>>

const post = async (path: string, body: object): Promise<Json> => {
  const { status, json } = await program.api.post(path, body)
  expect(status, JSON.stringify(json)).toBe(201)
  return json
}

const patchStatus = async (path: string, status: object): Promise<void> => {
  expect((await program.api.patch(`${path}/status`, { status }, 'merge')).status).toBe(200)
}

interface VolumeOptions {
  readonly name: string
  readonly policy: 'Delete' | 'Retain'
  readonly claimRef?: object
  readonly phase?: string
}

async function createVolume({ name, policy, claimRef, phase }: VolumeOptions): Promise<void> {
  await post('/api/v1/persistentvolumes', {
    metadata: { name },
    spec: {
      capacity: { storage: '2Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'local',
      persistentVolumeReclaimPolicy: policy,
      csi: { driver: DRIVER, volumeHandle: name },
      ...(claimRef ? { claimRef } : {}),
    },
  })
  if (phase) await patchStatus(`/api/v1/persistentvolumes/${name}`, { phase })
}

/** Creates a claim that is bound to a volume of 2Gi. */
async function createBoundClaim(name: string, policy: 'Delete' | 'Retain', status: object = {}): Promise<void> {
  const claims = '/api/v1/namespaces/shop/persistentvolumeclaims'
  const { metadata } = await post(claims, {
    metadata: { name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'local',
      resources: { requests: { storage: '2Gi' } },
      volumeName: `pv-${name}`,
    },
  })
  await createVolume({
    name: `pv-${name}`,
    policy,
    claimRef: { namespace: 'shop', name, uid: metadata.uid },
    phase: 'Bound',
  })
  await patchStatus(`${claims}/${name}`, { phase: 'Bound', capacity: { storage: '2Gi' }, ...status })
}

async function createPod(name: string, claimName: string, phase: string): Promise<void> {
  await post('/api/v1/namespaces/shop/pods', {
    metadata: { name },
    spec: {
      containers: [{ name: 'app', image: 'app' }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
    },
  })
  await patchStatus(`/api/v1/namespaces/shop/pods/${name}`, { phase })
}

/** Creates objects for all reasons except ClaimLost, 40 days before the current time of the fixture. */
async function createObjects(): Promise<void> {
  await post('/api/v1/namespaces', { metadata: { name: 'shop' } })
  for (const name of ['local', 'fast'])
    await post(`${STORAGE}/storageclasses`, { metadata: { name }, provisioner: DRIVER })
  const parameters = { iops: '100' }
  await post(`${STORAGE}/volumeattributesclasses`, { metadata: { name: 'gold' }, driverName: DRIVER, parameters })
  const lastTransitionTime = new Date(program.api.clock.nowMs() + 5 * DAY_MS).toISOString()
  await createBoundClaim('used', 'Delete')
  await createBoundClaim('report', 'Delete')
  await createBoundClaim('invoices', 'Delete', { conditions: [{ type: 'Unused', status: 'True', lastTransitionTime }] })
  await createBoundClaim('ledger', 'Retain')
  await createPod('web', 'used', 'Running')
  await createPod('job', 'report', 'Succeeded')
  const claimRef = { namespace: 'shop', name: 'deleted', uid: '00000000-0000-4000-8000-000000000000' }
  await createVolume({ name: 'pv-retained', policy: 'Retain', claimRef, phase: 'Released' })
  await createVolume({ name: 'pv-stuck', policy: 'Delete', claimRef, phase: 'Failed' })
  await createVolume({ name: 'pv-spare', policy: 'Retain' })
  await program.api.clock.advance(40 * DAY_MS)
}

async function runUnused(...flags: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = ''
  let err = ''
  const code = await runCommandLine(['node', 'stowage', 'unused', ...flags, '--kubeconfig', program.kubeconfig], {
    clock: { ...systemClock(), nowMs: () => program.api.clock.nowMs() },
    random: () => 0.5,
    signal: new AbortController().signal,
    write: (text) => {
      out += text
    },
    writeError: (text) => {
      err += text
    },
  })
  return { code, out, err }
}

const readItems = async (...flags: string[]): Promise<Json[]> =>
  JSON.parse((await runUnused(...flags, '-o', 'json')).out).items

describe('stowage unused', () => {
  beforeEach(async () => {
    program = await startProgramFixture()
    await createObjects()
  })

  it('PLUS-16 prints the output that the guide shows', async () => {
    await expectPage('unused', async (flags) => (await runUnused(...flags)).out)
  })

  it('PLUS-16 lists claims, volumes and classes with the bytes that they free, and marks commands that lose data', async () => {
    const items = await readItems('-A')
    const GIB = 2 ** 30
    expect(
      Object.fromEntries(
        items.map(({ name, reason, freedBytes, losesData }) => [name, [reason, freedBytes, losesData]]),
      ),
    ).toEqual({
      report: ['NoPod', 2 * GIB, true],
      invoices: ['NoPod', 2 * GIB, true],
      ledger: ['NoPod', 0, false],
      'pv-retained': ['Released', 2 * GIB, true],
      'pv-stuck': ['DeletionPending', 2 * GIB, false],
      'pv-spare': ['Available', 0, false],
      fast: ['NoVolume', 0, false],
      gold: ['NoVolume', 0, false],
    })
  })

  it('PLUS-16 selects a claim by the time of its condition, or by its age if it has none', async () => {
    const items = await readItems('-n', 'shop')
    expect(items.find(({ name }) => name === 'invoices')).toMatchObject({ isSinceKnown: true })
    expect(items.find(({ name }) => name === 'report')).toMatchObject({ isSinceKnown: false })
    const names = async (age: string) => (await readItems('-A', '--older-than', age)).map(({ name }) => name)
    expect(await names('36d')).not.toContain('invoices')
    expect(await names('34d12h')).toContain('invoices')
    expect(await names('41d')).toEqual([])
    expect((await runUnused('--older-than', '41d')).out).toContain(
      'No object has been unused for as long as --older-than requires. Use --older-than 0s to list',
    )
  })

  it('PLUS-16 lists the claims and volumes of one namespace, and no classes', async () => {
    const kinds = (await readItems('-n', 'shop')).map(({ kind, name }) => `${kind}/${name}`)
    expect(kinds).toContain('PersistentVolume/pv-retained')
    expect(kinds).not.toContain('PersistentVolume/pv-spare')
    expect(kinds.filter((kind) => kind.includes('Class/'))).toEqual([])
    expect(await readItems('-n', 'default')).toEqual([])
  })

  it('SYS-12 rejects an invalid duration', async () => {
    for (const age of ['soon', '', '7', '-1d', '1h2d'])
      expect(await runUnused('--older-than', age)).toMatchObject({
        code: 2,
        err: expect.stringContaining('expected a duration'),
      })
  })
})
