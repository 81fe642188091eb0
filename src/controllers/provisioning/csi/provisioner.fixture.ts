// Test fixture of the CSI provisioner with an in-memory API server and a stub driver, and builders of requests.
import { onTestFinished } from 'vitest'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import { authorizeUnservedKinds } from '../../../apiserver/rbac/component-access.fixture.ts'
import { createServerFixture, type ServerFixture } from '../../../apiserver/server.fixture.ts'
import { type Logger, silentLog } from '../../../base/log.ts'
import type { Client } from '../../../client/index.ts'
import { CsiError, type CsiFailureCode, type DriverFacts } from '../../../csi/index.ts'
import { GUARDED_CACHES } from '../../../processes/pruned-fields.fixture.ts'
import { createCacheSet, type EventDetails } from '../../../runtime/index.ts'
import type { Claim } from '../../../volumes/matching.ts'
import type { ProvisionRequest, ProvisionResult } from '../provisioner.ts'
import { createCsiProvisioner } from './csi-provisioner.ts'
import type { CsiProvisionerOptions } from './options.ts'
import { CREATES_VOLUMES, createStubDriver, factsOf } from './stub-driver.fixture.ts'

export interface ProvisionerFixtureOptions {
  readonly facts?: DriverFacts
  readonly options?: Partial<CsiProvisionerOptions>
  readonly log?: Logger
  /** Wraps the provisioner's client. */
  readonly wrapClient?: (client: Client) => Client
}

export async function createProvisionerFixture(fixtureOptions: ProvisionerFixtureOptions = {}) {
  const { facts = factsOf(), options, log = silentLog, wrapClient = (client) => client } = fixtureOptions
  const apiServer = await createServerFixture()
  const client = authorizeUnservedKinds(wrapClient(apiServer.clientOf('provisioner')), 'provisioner')
  const { clock } = apiServer
  const random = () => 0.5
  const caches = createCacheSet({ client, clock, random, reductions: GUARDED_CACHES })
  const driver = createStubDriver(CREATES_VOLUMES)
  const events: EventDetails[] = []
  const recorder = {
    record: (_kind: unknown, _object: unknown, event: EventDetails) => void events.push(event),
    run: async () => {},
    stats: () => ({ pending: 0, dropped: 0, sent: 0 }),
  }
  const rawProvisioner = createCsiProvisioner({
    driver,
    facts,
    client,
    caches,
    clock,
    random,
    log,
    events: recorder,
    options,
  })
  /** Waits before each call, so that the caches contain the objects that the test has written. */
  const provisioner: typeof rawProvisioner = {
    ...rawProvisioner,
    provision: (...args) => waitForWatchEvents().then(() => rawProvisioner.provision(...args)),
    delete: (...args) => waitForWatchEvents().then(() => rawProvisioner.delete(...args)),
  }
  onTestFinished(async () => {
    await caches.stop()
    await apiServer.store.close()
  })
  const signal = new AbortController().signal
  return {
    apiServer,
    client,
    caches,
    clock,
    driver,
    provisioner,
    events,
    signal,
    provision: (request: Partial<ProvisionRequest> = {}) => provisioner.provision(aRequest(request), signal),
  }
}

async function waitForWatchEvents(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
}

type Spec = NonNullable<PersistentVolumeClaim['spec']>

export const aClaim = (spec: Partial<Spec> = {}, metadata: object = {}): Claim => ({
  metadata: { name: 'orders', namespace: 'default', uid: 'uid-1', resourceVersion: '1', ...metadata },
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '100' } },
    storageClassName: 'fast',
    volumeMode: 'Filesystem',
    ...spec,
  },
})

export const aClass = (
  parameters: Record<string, string> = {},
  overrides: Partial<StorageClass> = {},
): StorageClass => ({
  metadata: { name: 'fast', uid: 'class-uid' },
  provisioner: 'disk.example.com',
  parameters,
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'Immediate',
  ...overrides,
})

const aRequest = (request: Partial<ProvisionRequest> = {}): ProvisionRequest => ({
  claim: aClaim(),
  storageClass: aClass(),
  volumeName: 'pvc-uid-1',
  selectedNode: undefined,
  ...request,
})

/** Returns the volume of a result. Throws if none was provisioned. */
export function volumeOf(result: ProvisionResult) {
  if (result.is !== 'provisioned') throw new Error(`not provisioned: ${JSON.stringify(result)}`)
  return result.volume
}

/** Replies of a driver whose CreateVolume fails. */
export const failCreateVolume = (code: CsiFailureCode, message = 'injected') => ({
  createVolume: async () => {
    throw new CsiError(code, message)
  },
})

/** Creates a Node with these labels, and a CSINode with their keys as topology keys of the driver. */
export async function createNode(apiServer: ServerFixture, name: string, labels: object): Promise<void> {
  await apiServer.post('/api/v1/nodes', { metadata: { name, labels } })
  await apiServer.post('/apis/storage.k8s.io/v1/csinodes', {
    metadata: { name },
    spec: { drivers: [{ name: 'disk.example.com', nodeID: name, topologyKeys: Object.keys(labels) }] },
  })
}
