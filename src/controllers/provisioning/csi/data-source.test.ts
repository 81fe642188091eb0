import { describe, expect, it } from 'vitest'
import { notFound } from '../../../api/status-error.ts'
import type { ServerFixture } from '../../../apiserver/server.fixture.ts'
import type { Client } from '../../../client/index.ts'
import type { ProvisionResult } from '../provisioner.ts'
import { aClaim, createProvisionerFixture } from './provisioner.fixture.ts'
import { SNAPSHOT_GROUP, type VolumeSnapshot, type VolumeSnapshotContent } from './snapshot-kinds.ts'
import { factsOf } from './stub-driver.fixture.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const VOLUMES = '/api/v1/persistentvolumes'
const FACTS = factsOf(['CREATE_DELETE_VOLUME', 'CLONE_VOLUME', 'CREATE_DELETE_SNAPSHOT'])
const CLAIM_SOURCE = { dataSource: { kind: 'PersistentVolumeClaim', name: 'source' } }
const SNAPSHOT_SOURCE = { dataSource: { apiGroup: SNAPSHOT_GROUP, kind: 'VolumeSnapshot', name: 'snap' } }
type PatchBody = { readonly metadata: { readonly finalizers?: readonly string[] } }

interface SourceOptions {
  readonly spec?: object
  readonly phase?: string
  readonly volumePhase?: string
  readonly driver?: string
  readonly mode?: string
  readonly boundTo?: string
}

async function createSource(apiServer: ServerFixture, options: SourceOptions = {}): Promise<void> {
  const { spec = {}, phase = 'Bound', volumePhase = 'Bound', driver = 'disk.example.com', mode, boundTo } = options
  const { json } = await apiServer.post(CLAIMS, {
    metadata: { name: 'source' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '100' } },
      storageClassName: 'slow',
      volumeName: 'pv-source',
      ...(mode ? { volumeMode: mode } : {}),
      ...spec,
    },
  })
  await apiServer.patch(`${CLAIMS}/source/status`, { status: { phase } }, 'merge')
  await apiServer.post(VOLUMES, {
    metadata: { name: 'pv-source' },
    spec: {
      capacity: { storage: '100' },
      accessModes: ['ReadWriteOnce'],
      csi: { driver, volumeHandle: 'handle-of-source' },
      claimRef: { namespace: 'default', name: 'source', uid: boundTo ?? json.metadata.uid },
      ...(mode ? { volumeMode: mode } : {}),
    },
  })
  await apiServer.patch(`${VOLUMES}/pv-source/status`, { status: { phase: volumePhase } }, 'merge')
}

const messageOf = (result: ProvisionResult) => ('message' in result ? result.message : '')
const readFinalizers = async (apiServer: ServerFixture) =>
  (await apiServer.get(`${CLAIMS}/source`)).json.metadata.finalizers

describe('clone of a claim', () => {
  it('passes the source volume and protects the source', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: FACTS })
    await createSource(apiServer)
    expect(await provision({ claim: aClaim(CLAIM_SOURCE) })).toMatchObject({ is: 'provisioned' }) // the source has another class
    expect(driver.createRequests[0]!.volumeContentSource?.type).toMatchObject({
      case: 'volume',
      value: { volumeId: 'handle-of-source' },
    })
    expect(await readFinalizers(apiServer)).toContain('provisioner.storage.kubernetes.io/cloning-protection')
  })

  it('allows a larger volume than the source, and rejects a reply that is smaller than requested', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: FACTS })
    await createSource(apiServer)
    const claim = aClaim({ ...CLAIM_SOURCE, resources: { requests: { storage: '200' } } })
    expect(await provision({ claim })).toMatchObject({ is: 'provisioned' })
    driver.setReplies({
      createVolume: async ({ volumeContentSource: contentSource }) => ({
        volume: { volumeId: 'v', capacityBytes: 100n, contentSource },
      }),
    })
    expect(messageOf(await provision({ claim }))).toContain('capacity 100 less than requested capacity 200')
  })

  it('deletes the new volume if the CreateVolume reply has no content source', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: FACTS })
    await createSource(apiServer)
    driver.setReplies({ createVolume: async () => ({ volume: { volumeId: 'empty', capacityBytes: 100n } }) })
    expect(await provision({ claim: aClaim(CLAIM_SOURCE) })).toMatchObject({ is: 'failed', failure: 'final' })
    expect(driver.deleteRequests).toMatchObject([{ volumeId: 'empty' }])
  })

  it.each<[string, SourceOptions, object, string]>([
    ['that is not bound', { phase: 'Pending' }, {}, 'must have a status of Bound. Got Pending'],
    [
      'that is larger',
      { spec: { resources: { requests: { storage: '101' } } } },
      {},
      'requested 100 but source is 101',
    ],
    ['of another driver', { driver: 'other.example.com' }, {}, 'handled by the driver other.example.com'],
    ['that is bound to another claim', { boundTo: 'another-uid' }, {}, 'not bound to default/source'],
    ['with a volume that is not bound', { volumePhase: 'Released' }, {}, 'is Released and not Bound'],
    [
      'of volume mode Block for a Filesystem claim',
      { mode: 'Block' },
      {},
      'Source is Block, but new PVC requested Filesystem',
    ],
    [
      'of volume mode Filesystem for a Block claim',
      {},
      { volumeMode: 'Block' },
      'Source is Filesystem, but new PVC requested Block',
    ],
    [
      'that a claim without a class requests',
      {},
      { storageClassName: undefined },
      'the claim itself has no storage class',
    ],
  ])('PROV-10 rejects a source %s', async (_, source, spec, message) => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: FACTS })
    await createSource(apiServer, source)
    const result = await provision({ claim: aClaim({ ...CLAIM_SOURCE, ...spec }) })
    expect(result).toMatchObject({ is: 'failed', failure: 'noChange' })
    expect(messageOf(result)).toContain(message)
    expect(driver.createRequests).toEqual([])
    expect(await readFinalizers(apiServer)).not.toContain('provisioner.storage.kubernetes.io/cloning-protection')
  })

  it('PROV-10 rejects a missing or deleted source, but continues a clone in progress', async () => {
    const { apiServer, provision } = await createProvisionerFixture({ facts: FACTS })
    const claim = aClaim(CLAIM_SOURCE)
    expect(messageOf(await provision({ claim }))).toContain('could not be read')
    await createSource(apiServer)
    await apiServer.delete(`${CLAIMS}/source`)
    expect(messageOf(await provision({ claim }))).toContain('is currently being deleted')
    const finalizers = ['kubernetes.io/pvc-protection', 'provisioner.storage.kubernetes.io/cloning-protection']
    // A claim being deleted accepts no new finalizer, so the source is recreated.
    await apiServer.patch(`${CLAIMS}/source`, { metadata: { finalizers: null } }, 'merge')
    await apiServer.delete(`${VOLUMES}/pv-source`)
    await apiServer.patch(`${VOLUMES}/pv-source`, { metadata: { finalizers: null } }, 'merge')
    await createSource(apiServer)
    await apiServer.patch(`${CLAIMS}/source`, { metadata: { finalizers: finalizers } }, 'merge')
    await apiServer.delete(`${CLAIMS}/source`)
    expect(await provision({ claim })).toMatchObject({ is: 'provisioned' })
  })
})

describe('restore of a snapshot', () => {
  const aSnapshot = (metadata: object = {}): VolumeSnapshot => ({
    metadata: { name: 'snap', namespace: 'default', uid: 'snap-uid', resourceVersion: '1', ...metadata },
    status: { boundVolumeSnapshotContentName: 'content', readyToUse: true, restoreSize: '100' },
  })
  const aContent = (spec: object = {}, annotations: Record<string, string> = {}): VolumeSnapshotContent => ({
    metadata: { name: 'content', annotations },
    spec: {
      driver: 'disk.example.com',
      volumeSnapshotRef: { namespace: 'default', name: 'snap', uid: 'snap-uid' },
      ...spec,
    },
    status: { snapshotHandle: 'handle-of-snapshot' },
  })

  /** Returns a wrapper for clients of an API server that serves the snapshot kinds. */
  function serveSnapshots(
    snapshots: readonly VolumeSnapshot[],
    contents: readonly VolumeSnapshotContent[],
    patches: PatchBody[] = [],
  ) {
    return (client: Client): Client => ({
      ...client,
      serves: async (kind) => kind.group === SNAPSHOT_GROUP || client.serves(kind),
      get: async (kind: any, ref: any, options: any) => {
        if (kind.group !== SNAPSHOT_GROUP) return client.get(kind, ref, options)
        const storedObjects: readonly any[] = kind.kind === 'VolumeSnapshot' ? snapshots : contents
        const object = storedObjects.find(({ metadata }) => metadata.name === ref.name)
        if (!object) throw notFound(kind, ref.name)
        return object
      },
      patch: async (kind: any, ref: any, patch: any, options: any) => {
        if (kind.group !== SNAPSHOT_GROUP) return client.patch(kind, ref, patch, options)
        patches.push(patch.body)
        return {} as any
      },
    })
  }
  const start = (
    snapshots: VolumeSnapshot[],
    contents: VolumeSnapshotContent[],
    patches: PatchBody[] = [],
    options = {},
  ) => createProvisionerFixture({ facts: FACTS, wrapClient: serveSnapshots(snapshots, contents, patches), options })

  it('passes the snapshot and protects it', async () => {
    const patches: PatchBody[] = []
    const { provision, driver } = await start([aSnapshot()], [aContent()], patches)
    expect(await provision({ claim: aClaim(SNAPSHOT_SOURCE) })).toMatchObject({ is: 'provisioned' })
    expect(driver.createRequests[0]!.volumeContentSource?.type).toMatchObject({
      case: 'snapshot',
      value: { snapshotId: 'handle-of-snapshot' },
    })
    expect(patches[0]!.metadata.finalizers).toEqual([
      'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection',
    ])
  })

  it.each([
    [
      'the Stowage API server',
      true,
      /: Stowage does not serve snapshots\. Recreate the claim without the data source$/,
    ],
    [
      'another API server',
      false,
      /: install the snapshot controller's CustomResourceDefinitions, or recreate the claim/,
    ],
  ])('PROV-10 returns a message with a remedy if %s does not serve snapshots', async (_which, isStowage, remedy) => {
    const wrapClient = (client: Client) => ({ ...client, commitsAtomically: async () => isStowage })
    const { provision } = await createProvisionerFixture({ facts: FACTS, wrapClient })
    const result = await provision({ claim: aClaim(SNAPSHOT_SOURCE) })
    expect(result).toMatchObject({
      failure: 'final',
      message: expect.stringMatching(/has no snapshot\.storage\.k8s\.io/),
    })
    expect(result).toMatchObject({ message: expect.stringMatching(remedy) })
  })

  it.each<[string, VolumeSnapshot[], VolumeSnapshotContent[], object, string]>([
    ['that is missing', [], [], {}, 'error getting snapshot snap'],
    ['that is unbound', [{ ...aSnapshot(), status: {} }], [], {}, 'snapshot snap not bound'],
    ['without content', [aSnapshot()], [], {}, 'snapshotcontent content for snapshot snap'],
    [
      'whose content refers to another snapshot',
      [aSnapshot()],
      [aContent({ volumeSnapshotRef: { uid: 'x' } })],
      {},
      'bound to a different snapshot',
    ],
    [
      'of another driver',
      [aSnapshot()],
      [aContent({ driver: 'o' })],
      {},
      'not handled by CSI driver disk.example.com but by o',
    ],
    [
      'that is not ready',
      [{ ...aSnapshot(), status: { boundVolumeSnapshotContentName: 'content' } }],
      [aContent()],
      {},
      'snapshot snap is not Ready',
    ],
    ['without a handle', [aSnapshot()], [{ ...aContent(), status: {} }], {}, 'snapshot handle snap is not available'],
    [
      'that is larger',
      [aSnapshot()],
      [aContent()],
      { resources: { requests: { storage: '99' } } },
      'less than the size 100',
    ],
    ['of another mode', [aSnapshot()], [aContent({ sourceVolumeMode: 'Block' })], {}, 'does not have permission'],
    [
      'that is being deleted',
      [aSnapshot({ deletionTimestamp: '2026-01-01T00:00:00Z' })],
      [aContent()],
      {},
      'is being deleted',
    ],
  ])('PROV-10 returns a retryable failure for a snapshot %s', async (_, snapshots, contents, spec, message) => {
    const { provision, driver } = await start(snapshots, contents)
    const result = await provision({ claim: aClaim({ ...SNAPSHOT_SOURCE, ...spec }) })
    expect(result).toMatchObject({ is: 'failed', failure: 'noChange' })
    expect(messageOf(result)).toContain(message)
    expect(driver.createRequests).toEqual([])
  })

  it('continues a restore in progress and allows another volume mode by annotation of the content or by option', async () => {
    const finalizers = ['provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection']
    const deletedSnapshot = aSnapshot({ deletionTimestamp: '2026-01-01T00:00:00Z', finalizers })
    const restoringFixture = await start([deletedSnapshot], [aContent()])
    expect(await restoringFixture.provision({ claim: aClaim(SNAPSHOT_SOURCE) })).toMatchObject({ is: 'provisioned' })

    const annotations = { 'snapshot.storage.kubernetes.io/allow-volume-mode-change': 'true' }
    const annotationFixture = await start([aSnapshot()], [aContent({ sourceVolumeMode: 'Block' }, annotations)])
    expect(await annotationFixture.provision({ claim: aClaim(SNAPSHOT_SOURCE) })).toMatchObject({ is: 'provisioned' })
    const conversionFixture = await start([aSnapshot()], [aContent({ sourceVolumeMode: 'Block' })], [], {
      preventVolumeModeConversion: false,
    })
    expect(await conversionFixture.provision({ claim: aClaim(SNAPSHOT_SOURCE) })).toMatchObject({ is: 'provisioned' })
  })
})
