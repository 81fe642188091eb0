// Test fixture: an API server in memory, a fake driver without a socket, and builders of PVs, claims and driver volumes.
import { create, type DescMethod, type Message } from '@bufbuild/protobuf'
import { onTestFinished } from 'vitest'
import type { KubeObject } from '../../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { storageClassKind } from '../../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import type { PersistentVolume, PersistentVolumeSpec } from '../../../api/kinds/volume/volume-schema.ts'
import { authorizeUnservedKinds } from '../../../apiserver/rbac/component-access.fixture.ts'
import { createServerFixture } from '../../../apiserver/server.fixture.ts'
import type { Client } from '../../../client/index.ts'
import { SNAPSHOT_GROUP } from '../../../controllers/provisioning/csi/snapshot-kinds.ts'
import { createFakeDriver, type FakeDriver, type FakeSettings, fakeSettings } from '../../../csi/fake/index.ts'
import { type CsiDriver, createCsiDriver } from '../../../csi/index.ts'
import type { FindDeps, FindOptions } from './find-leaks.ts'
import { type DriverProcess, identifyProcess } from './inventory.ts'

export const DRIVER = 'fake.stowage.example'
export const GIB = 1024 ** 3
export const OPTIONS: FindOptions = { gracePeriodMs: 60_000, namedHandles: new Set() }

export interface LeaksFixtureOptions {
  readonly settings?: Partial<FakeSettings>
  /** The VolumeSnapshotContents of the server. Default: it does not serve them. */
  readonly contents?: readonly KubeObject[]
}

export async function createLeaksFixture({ settings = {}, contents }: LeaksFixtureOptions = {}) {
  const server = await createServerFixture()
  onTestFinished(() => server.store.close())
  const { clock } = server
  const admin = server.client()
  const fake = createFakeDriver({ clock, settings: fakeSettings(settings) })
  const driver = connectFake(fake)
  const { signal } = new AbortController()
  await admin.create(storageClassKind, { metadata: { name: 'fast' }, provisioner: DRIVER })

  const process = await identifyProcess({ address: '/csi.sock', driver }, { timeoutMs: 1_000, signal })
  const client = authorizeUnservedKinds(withContents(server.clientOf('leaks'), contents), 'leaks')
  const deps: FindDeps & { readonly client: Client } = { client, processes: [process], clock, signal }

  return {
    server,
    admin,
    fake,
    driver,
    process,
    deps,
    /** Creates a volume of the driver, and returns its handle. */
    async createVolume(name: string, parameters: Readonly<Record<string, string>> = {}): Promise<string> {
      const mode = { accessMode: { mode: 1 }, accessType: { case: 'mount' as const, value: {} } }
      const request = { name, parameters, volumeCapabilities: [mode], capacityRange: { requiredBytes: BigInt(GIB) } }
      const { volume } = await driver.controller.createVolume(request as never)
      return volume!.volumeId
    },
    createPv(name: string, volumeHandle: string, spec: Partial<PersistentVolumeSpec> = {}) {
      const csi = { driver: DRIVER, volumeHandle, volumeAttributes: { pool: 'pool' }, ...spec.csi }
      return admin.create(persistentVolumeKind, {
        metadata: { name },
        spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], storageClassName: 'fast', ...spec, csi },
      } as PersistentVolume)
    },
    createClaim(name: string, metadata: Partial<PersistentVolumeClaim['metadata']> = {}) {
      return admin.create(persistentVolumeClaimKind, {
        metadata: { namespace: 'default', name, ...metadata },
        spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'fast', resources: { requests: { storage: '1Gi' } } },
      })
    },
  }
}

type AnyCall = (request: Message, call: { signal: AbortSignal }) => Promise<object>

/** Returns a client that calls the fake driver directly. */
export function connectFake(fake: FakeDriver, onCall: (method: string) => Promise<void> = async () => {}): CsiDriver {
  const services = { Identity: fake.identity, Controller: fake.controller, Node: fake.node('node-1') }
  return createCsiDriver(async (method: DescMethod, request, { signal = new AbortController().signal }) => {
    const service = services[method.parent.name as keyof typeof services] as unknown as Record<string, AnyCall>
    await onCall(method.name)
    const response = await service[method.localName]!(request, { signal })
    await onCall(method.name)
    return create(method.output, response as never)
  })
}

/** Returns the process as if it ran on a node with this topology. */
export const withSegments = (process: DriverProcess, segments: Readonly<Record<string, string>>): DriverProcess => ({
  ...process,
  segments,
})

/** Serves VolumeSnapshotContents, which the server of the fixture does not have. */
const withContents = (client: Client, contents: readonly KubeObject[] | undefined): Client =>
  contents === undefined
    ? client
    : {
        ...client,
        async list(kind, request) {
          if (kind.group !== SNAPSHOT_GROUP) return client.list(kind, request)
          return { items: contents as never, resourceVersion: '1' }
        },
      }
