// Tests how the provisioner creates volumes. csi-provisioner-topology, -attributes and -deletion.test.ts test the rest.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how classes write templates
import { describe, expect, it } from 'vitest'
import { CSI_CODES, CsiError, type CsiFailureCode } from '../../../csi/index.ts'
import {
  aClaim,
  aClass,
  createNode,
  createProvisionerFixture,
  failCreateVolume,
  volumeOf,
} from './provisioner.fixture.ts'
import { factsOf, TOPOLOGY_FACTS } from './stub-driver.fixture.ts'

const SECRETS = '/api/v1/namespaces/default/secrets'

describe('createCsiProvisioner', () => {
  it('calls CreateVolume with fields of the claim and the class, and converts the reply to a volume', async () => {
    const { provision, driver } = await createProvisionerFixture({ options: { defaultFsType: 'ext4' } })
    driver.setReplies({
      createVolume: async () => ({ volume: { volumeId: 'v-1', capacityBytes: 200n, volumeContext: { share: 's' } } }),
    })
    const storageClass = aClass({ tier: 'gold' }, { mountOptions: ['noatime'] })
    const { spec } = volumeOf(await provision({ storageClass }))

    expect(driver.createRequests).toHaveLength(1)
    expect(driver.createRequests[0]).toMatchObject({
      name: 'pvc-uid-1',
      capacityRange: { requiredBytes: 100n, limitBytes: 0n },
      parameters: { tier: 'gold' },
      volumeCapabilities: [{ accessType: { case: 'mount', value: { fsType: 'ext4', mountFlags: ['noatime'] } } }],
      secrets: {},
      mutableParameters: {},
    })
    expect(driver.createRequests[0]!.accessibilityRequirements).toBeUndefined()
    expect(spec).toEqual({
      capacity: { storage: '200' },
      volumeMode: 'Filesystem',
      csi: {
        driver: 'disk.example.com',
        volumeHandle: 'v-1',
        fsType: 'ext4',
        volumeAttributes: {
          'storage.kubernetes.io/csiProvisionerIdentity': expect.stringMatching(/^\d+-5000-disk\.example\.com$/),
          share: 's',
        },
      },
    })
  })

  it('PROV-11 returns the requested size if the driver reports none', async () => {
    const { provision, driver } = await createProvisionerFixture()
    driver.setReplies({ createVolume: async () => ({ volume: { volumeId: 'v' } }) })
    const claim = aClaim({ resources: { requests: { storage: '1500M' } } })
    expect(volumeOf(await provision({ claim })).spec.capacity).toEqual({ storage: '1500000000' })
    expect(driver.createRequests[0]!.capacityRange?.requiredBytes).toBe(1_500_000_000n)
  })

  it('returns no fsType for a block volume, and readOnly only if the option is set', async () => {
    const defaultFixture = await createProvisionerFixture({ options: { defaultFsType: 'ext4' } })
    const blockVolume = volumeOf(await defaultFixture.provision({ claim: aClaim({ volumeMode: 'Block' }) }))
    expect(blockVolume.spec.csi?.fsType).toBeUndefined()
    expect(blockVolume.spec.volumeMode).toBe('Block')
    const readOnlyClaim = aClaim({ accessModes: ['ReadOnlyMany'] })
    expect(volumeOf(await defaultFixture.provision({ claim: readOnlyClaim })).spec.csi?.readOnly).toBeUndefined()

    const readOnlyFixture = await createProvisionerFixture({ options: { controllerPublishReadOnly: true } })
    expect(volumeOf(await readOnlyFixture.provision({ claim: readOnlyClaim })).spec.csi?.readOnly).toBe(true)
    const readWriteClaim = aClaim({ accessModes: ['ReadOnlyMany', 'ReadWriteOnce'] })
    expect(volumeOf(await readOnlyFixture.provision({ claim: readWriteClaim })).spec.csi?.readOnly).toBeUndefined()
    expect(readOnlyFixture.driver.createRequests[1]!.volumeCapabilities).toHaveLength(2)
  })

  it('PROV-16 returns secret references in the spec and not in annotations', async () => {
    const { provision } = await createProvisionerFixture()
    const storageClass = aClass({
      'csi.storage.k8s.io/node-stage-secret-name': '${pvc.name}',
      'csi.storage.k8s.io/node-stage-secret-namespace': 'vault',
    })
    const volume = volumeOf(await provision({ storageClass }))
    expect(volume.spec.csi?.nodeStageSecretRef).toEqual({ name: 'orders', namespace: 'vault' })
    expect(volume.spec.csi?.controllerExpandSecretRef).toBeUndefined()
    expect(volume.annotations).toBeUndefined()
  })

  it('passes the names of the claim and the volume if the option is set', async () => {
    const { provision, driver } = await createProvisionerFixture({ options: { extraCreateMetadata: true } })
    await provision()
    expect(driver.createRequests[0]!.parameters).toEqual({
      'csi.storage.k8s.io/pvc/name': 'orders',
      'csi.storage.k8s.io/pvc/namespace': 'default',
      'csi.storage.k8s.io/pv/name': 'pvc-uid-1',
    })
  })
})

describe('parameters for CreateVolume', () => {
  it('PROV-19 differ between two classes of one driver', async () => {
    const { provision, driver } = await createProvisionerFixture()
    await provision({ storageClass: aClass({ media: 'ssd', replicas: '3' }) })
    await provision({ storageClass: aClass({ media: 'tape' }) })
    expect(driver.createRequests.map(({ parameters }) => parameters)).toEqual([
      { media: 'ssd', replicas: '3' },
      { media: 'tape' },
    ])
  })
})

describe('credentials for CreateVolume', () => {
  it('PROV-16 prefers the secret of the class to the process credentials, and redacts credentials in messages', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({
      options: { credentials: () => ({ token: 'own-token' }) },
    })
    await provision()
    await apiServer.post(SECRETS, { metadata: { name: 'creds' }, stringData: { token: 'hunter2-token' } })
    const storageClass = aClass({
      'csi.storage.k8s.io/secret-name': 'creds',
      'csi.storage.k8s.io/secret-namespace': '${pvc.namespace}',
    })
    driver.setReplies(failCreateVolume('UNAUTHENTICATED', 'token hunter2-token is not valid'))
    const result = await provision({ storageClass })
    expect(driver.createRequests.map(({ secrets }) => secrets)).toEqual([
      { token: 'own-token' },
      { token: 'hunter2-token' },
    ])
    expect(JSON.stringify(result)).not.toContain('hunter2')
    expect(result).toMatchObject({ message: expect.stringContaining('token *** is not valid') })
  })

  it('PROV-16 rejects a secret whose value is not text and names the key', async () => {
    const { apiServer, provision } = await createProvisionerFixture()
    await apiServer.post(SECRETS, {
      metadata: { name: 'creds' },
      data: { blob: Buffer.from([0xff, 0xfe]).toString('base64') },
    })
    const storageClass = aClass({
      'csi.storage.k8s.io/secret-name': 'creds',
      'csi.storage.k8s.io/secret-namespace': 'default',
    })
    expect(await provision({ storageClass })).toMatchObject({
      failure: 'noChange',
      message: expect.stringContaining('key "blob" of secret creds in namespace default is not UTF-8 text'),
    })
  })
})

describe('rejection before CreateVolume', () => {
  it.each([
    ['an empty selector', { claim: aClaim({ selector: {} }) }, 'final', 'claim Selector is not supported'],
    ['a claim without a uid', { claim: aClaim({}, { uid: undefined }) }, 'final', 'without a uid'],
    [
      'an unknown reserved parameter',
      { storageClass: aClass({ 'csi.storage.k8s.io/x': '1' }) },
      'final',
      'unknown parameter',
    ],
    [
      'a class with two file systems',
      { storageClass: aClass({ fstype: 'a', 'csi.storage.k8s.io/fstype': 'b' }) },
      'final',
      'fstype',
    ],
    [
      'a size beyond 64 bits',
      { claim: aClaim({ resources: { requests: { storage: '1e30' } } }) },
      'final',
      'exceeds the maximum size',
    ],
    [
      'a data source without the capability CLONE_VOLUME',
      { claim: aClaim({ dataSource: { kind: 'PersistentVolumeClaim', name: 'a' } }) },
      'final',
      'CLONE_VOLUME capability is not reported',
    ],
    [
      'a snapshot of the wrong group',
      { claim: aClaim({ dataSource: { kind: 'VolumeSnapshot', name: 'a' } }) },
      'final',
      'right APIGroup',
    ],
    [
      'a source in another namespace',
      { claim: aClaim({ dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'a', namespace: 'other' } }) },
      'final',
      'CrossNamespaceVolumeDataSource feature is disabled',
    ],
    [
      'a class with an unknown token in a secret template',
      {
        storageClass: aClass({
          'csi.storage.k8s.io/provisioner-secret-name': '${nope}',
          'csi.storage.k8s.io/provisioner-secret-namespace': 'a',
        }),
      },
      'noChange',
      'invalid tokens',
    ],
    [
      'a class with a missing secret',
      {
        storageClass: aClass({
          'csi.storage.k8s.io/provisioner-secret-name': 'gone',
          'csi.storage.k8s.io/provisioner-secret-namespace': 'default',
        }),
      },
      'noChange',
      'error getting secret gone in namespace default',
    ],
    [
      'an attributes class without the capability MODIFY_VOLUME',
      { claim: aClaim({ volumeAttributesClassName: 'gold' }) },
      'final',
      'MODIFY_VOLUME capability is not reported',
    ],
    [
      'iops without the capability MODIFY_VOLUME',
      { claim: aClaim({ resources: { requests: { storage: '1', iops: '100' } } }) },
      'final',
      'iops and throughput of claims',
    ],
  ])('PROV-10 rejects %s without calling the driver', async (_, request, failure, message) => {
    const { provision, driver } = await createProvisionerFixture()
    const result = await provision(request as never)
    expect(result).toMatchObject({ is: 'failed', failure, message: expect.stringContaining(message) })
    expect(driver.createRequests).toEqual([])
  })

  it('rejects a request if the driver cannot create volumes', async () => {
    const { provision, driver } = await createProvisionerFixture({ facts: factsOf([]) })
    expect(await provision()).toMatchObject({
      is: 'failed',
      failure: 'final',
      message: expect.stringContaining('CREATE_DELETE_VOLUME'),
    })
    expect(driver.createRequests).toEqual([])
  })

  it('ignores a claim with an unknown data source and records an event about the populator', async () => {
    const { provision, provisioner, driver, events, signal } = await createProvisionerFixture()
    const claim = aClaim({ dataSourceRef: { apiGroup: 'example.com', kind: 'Image', name: 'x' } })
    expect(await provision({ claim })).toMatchObject({ is: 'ignored' })
    expect(await provisioner.accepts!({ claim, storageClass: aClass(), selectedNode: undefined }, signal)).toBe(false)
    expect(events).toEqual([
      { type: 'Normal', reason: 'Provisioning', message: 'Assuming an external populator will provision the volume' },
    ])
    expect(driver.createRequests).toEqual([])
  })

  it('PROV-12 returns noChange for an invalid request while the result of an earlier call is unknown', async () => {
    const { provision, driver } = await createProvisionerFixture()
    driver.setReplies(failCreateVolume('UNAVAILABLE'))
    expect(await provision()).toMatchObject({ failure: 'unfinished' })
    const invalidRequest = { storageClass: aClass({ 'csi.storage.k8s.io/x': '1' }) }
    expect(await provision(invalidRequest)).toMatchObject({ failure: 'noChange' })
    driver.setReplies(failCreateVolume('INTERNAL'))
    expect(await provision()).toMatchObject({ failure: 'final' })
    expect(await provision(invalidRequest)).toMatchObject({ failure: 'final' })
  })
})

describe('failures of the driver', () => {
  const failureCodes = CSI_CODES.filter((code) => code !== 'OK')
  const EXPECTED_FAILURES: Partial<Record<CsiFailureCode, string>> = {
    CANCELLED: 'unfinished',
    DEADLINE_EXCEEDED: 'unfinished',
    UNAVAILABLE: 'unfinished',
    ABORTED: 'unfinished',
    INVALID_ARGUMENT: 'infeasible',
    ALREADY_EXISTS: 'noChange', // the error means that a volume exists
  }

  it.each(failureCodes.map((code) => [code, EXPECTED_FAILURES[code] ?? 'final'] as const))(
    'classifies %s as %s and returns the message of the driver',
    async (code, failure) => {
      const { provision, driver } = await createProvisionerFixture()
      driver.setReplies(failCreateVolume(code, 'the reason'))
      const result = await provision()
      expect(result).toMatchObject({ is: 'failed', failure })
      expect(result).toMatchObject({ message: expect.stringContaining('desc = the reason') })
    },
  )

  it('CAP-13 returns reschedule if the storage of a selected node is exhausted', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: TOPOLOGY_FACTS })
    await createNode(apiServer, 'node-a', { zone: 'a' })
    driver.setReplies(failCreateVolume('RESOURCE_EXHAUSTED'))
    expect(await provision({ selectedNode: 'node-a' })).toMatchObject({ failure: 'reschedule' })
    expect(await provision()).toMatchObject({ failure: 'final' })
  })

  it('PROV-11 deletes a volume that is smaller than requested', async () => {
    const { provision, driver } = await createProvisionerFixture()
    driver.setReplies({ createVolume: async () => ({ volume: { volumeId: 'v', capacityBytes: 80n } }) })
    const result = await provision()
    expect(result).toMatchObject({ is: 'failed', failure: 'final' })
    expect(result).toMatchObject({ message: expect.stringContaining('capacity 80 less than requested capacity 100') })
    expect(driver.deleteRequests.map(({ volumeId }) => volumeId)).toEqual(['v'])
  })

  it('PROV-12 returns unfinished after five failed deletions of a volume that is too small', async () => {
    const { provision, driver } = await createProvisionerFixture()
    driver.setReplies({
      createVolume: async () => ({ volume: { volumeId: 'v', capacityBytes: 80n } }),
      deleteVolume: async () => {
        throw new CsiError('INTERNAL', 'cannot')
      },
    })
    expect(await provision()).toMatchObject({
      failure: 'unfinished',
      message: expect.stringContaining('Cleanup of volume pvc-uid-1 failed'),
    })
    expect(driver.deleteRequests).toHaveLength(5)
  })

  it('PROV-12 returns unfinished, with the cause, if it stops before it can delete a volume that is too small', async () => {
    const { provisioner, driver } = await createProvisionerFixture()
    const abort = new AbortController()
    driver.setReplies({
      createVolume: async () => {
        abort.abort()
        return { volume: { volumeId: 'v', capacityBytes: 80n } }
      },
    })
    const request = { claim: aClaim(), storageClass: aClass(), volumeName: 'pvc-uid-1', selectedNode: undefined }
    expect(await provisioner.provision(request, abort.signal)).toMatchObject({
      failure: 'unfinished',
      message: expect.stringMatching(/Cleanup of volume pvc-uid-1 failed: the provisioner is stopping$/),
    })
    expect(driver.deleteRequests).toEqual([])
  })

  it('PROV-12 returns unfinished for a volume without an ID', async () => {
    const { provision, driver } = await createProvisionerFixture()
    driver.setReplies({ createVolume: async () => ({ volume: {} }) })
    expect(await provision()).toMatchObject({ failure: 'unfinished', message: expect.stringContaining('volume_id') })
  })
})
