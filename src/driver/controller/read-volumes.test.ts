import { expect, it } from 'vitest'
import type { GetCapacityRequest } from '../../csi/gen/csi_pb.js'
import type { Host } from '../../host/host.ts'
import type { HostFacts } from '../../host/index.ts'
import { createLoopBackend } from '../backends/loop-backend.ts'
import type { DriverContext } from '../context.ts'
import { createPool } from '../pool/pool.ts'
import { getCapacity } from './read-volumes.ts'

const AVAILABLE = { available: true } as const
const facts = {
  filesystems: { xfs: AVAILABLE, ext4: { available: false, message: 'mkfs.ext4 is not installed' } },
  canGrowExt4Online: AVAILABLE,
  canReflink: AVAILABLE,
  limits: { version: 'v2' },
} as unknown as HostFacts

const driver = {
  backend: createLoopBackend({ host: {} as Host, facts, pool: '/pool' }),
  pool: createPool({ directory: '/pool', sizeBytes: 2e9, freeBytes: async () => 4e9, allocatesOnCreate: true }),
} as unknown as DriverContext
const readCapacity = async (parameters: Record<string, string>) =>
  (await getCapacity({ parameters, volumeCapabilities: [] } as unknown as GetCapacityRequest, driver)).availableCapacity

it('getCapacity reports no capacity for a class with an unavailable file system', async () => {
  expect(await readCapacity({ fsType: 'ext4' })).toBe(0n)
  expect(await readCapacity({ fsType: 'xfs' })).toBe(2_000_000_000n)
  expect(await readCapacity({})).toBe(2_000_000_000n)
})

it('getCapacity ignores csi.storage.k8s.io parameters of a class except the file system', async () => {
  const secret = { 'csi.storage.k8s.io/provisioner-secret-name': 'a' }
  expect(await readCapacity({ 'csi.storage.k8s.io/fstype': 'xfs', ...secret })).toBe(2_000_000_000n)
  expect(await readCapacity({ 'csi.storage.k8s.io/fstype': 'ext4' }), 'not available').toBe(0n)
  expect(await readCapacity({ colour: 'red' }), 'CreateVolume would fail').toBe(0n)
})
