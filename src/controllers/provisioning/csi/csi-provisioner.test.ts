// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how classes write templates
import { describe, expect, it } from 'vitest'
import { parseFeatureGates } from '../../../api/feature-gates.ts'
import type { Kind } from '../../../api/kind.ts'
import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import { ApiError } from '../../../api/status-error.ts'
import type { Client } from '../../../client/index.ts'
import { CSI_CODES, CsiError, type CsiFailureCode } from '../../../csi/index.ts'
import type { ProvisionResult } from '../provisioner.ts'
import { aClaim, aClass, createProvisionerFixture } from './provisioner.fixture.ts'
import { factsOf } from './stub-driver.fixture.ts'

const VACS = '/apis/storage.k8s.io/v1/volumeattributesclasses'
const SECRETS = '/api/v1/namespaces/default/secrets'
const WITH_MODIFY_VOLUME = factsOf(['CREATE_DELETE_VOLUME', 'MODIFY_VOLUME'])
const WITH_TOPOLOGY = factsOf(['CREATE_DELETE_VOLUME'], ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'])

function volumeOf(result: ProvisionResult) {
  if (result.is !== 'provisioned') throw new Error(`not provisioned: ${JSON.stringify(result)}`)
  return result.volume
}
const failCreateVolume = (code: CsiFailureCode, message = 'injected') => ({
  createVolume: async () => {
    throw new CsiError(code, message)
  },
})

describe('createCsiProvisioner', () => {
  it('PROV-9 calls CreateVolume with fields of claim and class, and converts the reply to a volume', async () => {
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

  it('PROV-9 returns no fsType for a block volume, and readOnly only if the option is set', async () => {
    const withDefaults = await createProvisionerFixture({ options: { defaultFsType: 'ext4' } })
    const block = volumeOf(await withDefaults.provision({ claim: aClaim({ volumeMode: 'Block' }) }))
    expect(block.spec.csi?.fsType).toBeUndefined()
    expect(block.spec.volumeMode).toBe('Block')
    const readOnly = aClaim({ accessModes: ['ReadOnlyMany'] })
    expect(volumeOf(await withDefaults.provision({ claim: readOnly })).spec.csi?.readOnly).toBeUndefined()

    const withPublishReadOnly = await createProvisionerFixture({ options: { controllerPublishReadOnly: true } })
    expect(volumeOf(await withPublishReadOnly.provision({ claim: readOnly })).spec.csi?.readOnly).toBe(true)
    const readWriteClaim = aClaim({ accessModes: ['ReadOnlyMany', 'ReadWriteOnce'] })
    expect(volumeOf(await withPublishReadOnly.provision({ claim: readWriteClaim })).spec.csi?.readOnly).toBeUndefined()
    expect(withPublishReadOnly.driver.createRequests[1]!.volumeCapabilities).toHaveLength(2)
  })

  it('PROV-9 returns secret references in the spec and not in annotations', async () => {
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

  it('PROV-9 passes the names of claim and volume if the option is set', async () => {
    const { provision, driver } = await createProvisionerFixture({ options: { extraCreateMetadata: true } })
    await provision()
    expect(driver.createRequests[0]!.parameters).toEqual({
      'csi.storage.k8s.io/pvc/name': 'orders',
      'csi.storage.k8s.io/pvc/namespace': 'default',
      'csi.storage.k8s.io/pv/name': 'pvc-uid-1',
    })
  })
})

describe('rejection before CreateVolume', () => {
  it.each([
    ['an empty selector', { claim: aClaim({ selector: {} }) }, 'final', 'claim Selector is not supported'],
    ['no uid', { claim: aClaim({}, { uid: undefined }) }, 'final', 'without a uid'],
    [
      'an unknown reserved parameter',
      { storageClass: aClass({ 'csi.storage.k8s.io/x': '1' }) },
      'final',
      'unknown parameter',
    ],
    [
      'two file systems',
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
      'a secret template with an unknown token',
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
      'a missing secret',
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

  it('PROV-9 rejects a request if the driver cannot create volumes', async () => {
    const { provision, driver } = await createProvisionerFixture({ facts: factsOf([]) })
    expect(await provision()).toMatchObject({
      is: 'failed',
      failure: 'final',
      message: expect.stringContaining('CREATE_DELETE_VOLUME'),
    })
    expect(driver.createRequests).toEqual([])
  })

  it('PROV-9 ignores a claim with an unknown data source and records an event about the populator', async () => {
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

  it.each(failureCodes)('PROV-9 classifies %s and returns the message of the driver', async (code) => {
    const { provision, driver } = await createProvisionerFixture()
    driver.setReplies(failCreateVolume(code, 'the reason'))
    const result = await provision()
    expect(result).toMatchObject({ is: 'failed', failure: EXPECTED_FAILURES[code] ?? 'final' })
    expect(result).toMatchObject({ message: expect.stringContaining('desc = the reason') })
  })

  it('PROV-9 returns reschedule if the storage of a selected node is exhausted', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: WITH_TOPOLOGY })
    await aNode(apiServer, 'node-a', { zone: 'a' })
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

  it('PROV-12 returns unfinished for a volume without an ID', async () => {
    const { provision, driver } = await createProvisionerFixture()
    driver.setReplies({ createVolume: async () => ({ volume: {} }) })
    expect(await provision()).toMatchObject({ failure: 'unfinished', message: expect.stringContaining('volume_id') })
  })
})

const aNode = async (
  apiServer: Awaited<ReturnType<typeof createProvisionerFixture>>['apiServer'],
  name: string,
  labels: object,
) => {
  await apiServer.post('/api/v1/nodes', { metadata: { name, labels } })
  await apiServer.post('/apis/storage.k8s.io/v1/csinodes', {
    metadata: { name },
    spec: { drivers: [{ name: 'disk.example.com', nodeID: name, topologyKeys: Object.keys(labels) }] },
  })
}

describe('topology of created volumes', () => {
  it('PROV-12 finds a volume that a crashed process created for a deleted node', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({
      facts: WITH_TOPOLOGY,
      options: { strictTopology: true },
    })
    await aNode(apiServer, 'node-b', { zone: 'b' })
    driver.setReplies({
      createVolume: async ({ accessibilityRequirements }) => {
        if (accessibilityRequirements) throw new CsiError('ALREADY_EXISTS', 'volume "pvc-uid-1" exists in zone a')
        return { volume: { volumeId: 'v', capacityBytes: 100n, accessibleTopology: [{ segments: { zone: 'a' } }] } }
      },
    })
    expect(await provision({ selectedNode: 'node-b' })).toMatchObject({
      is: 'provisioned',
      volume: {
        spec: { csi: { volumeHandle: 'v' } },
        unusableReason: 'an earlier attempt created it for another node',
      },
    })
    driver.setReplies(failCreateVolume('ALREADY_EXISTS'))
    expect(await provision({ selectedNode: 'node-b' })).toMatchObject({ is: 'failed', failure: 'noChange' })
  })

  it('PROV-9 passes the topology to the driver and converts the topology of the reply to a node affinity', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({
      facts: WITH_TOPOLOGY,
      options: { strictTopology: true },
    })
    await aNode(apiServer, 'node-a', { zone: 'a' })
    await aNode(apiServer, 'node-b', { zone: 'b' })
    driver.setReplies({
      createVolume: async () => ({
        volume: { volumeId: 'v', accessibleTopology: [{ segments: { zone: 'b', rack: '1' } }, {}] },
      }),
    })
    const { spec } = volumeOf(await provision({ selectedNode: 'node-b' }))
    expect(driver.createRequests[0]!.accessibilityRequirements).toMatchObject({
      requisite: [{ segments: { zone: 'b' } }],
      preferred: [{ segments: { zone: 'b' } }],
    })
    expect(spec.nodeAffinity?.required?.nodeSelectorTerms).toEqual([
      {
        matchExpressions: [
          { key: 'rack', operator: 'In', values: ['1'] },
          { key: 'zone', operator: 'In', values: ['b'] },
        ],
      },
    ])
  })

  it('PROV-9 returns no node affinity for empty topologies in the reply', async () => {
    const { provision, driver } = await createProvisionerFixture({
      facts: WITH_TOPOLOGY,
      options: { immediateTopology: false },
    })
    driver.setReplies({ createVolume: async () => ({ volume: { volumeId: 'v', accessibleTopology: [{}, {}] } }) })
    expect(volumeOf(await provision()).spec.nodeAffinity).toBeUndefined()
  })

  it('PROV-9 repeats the topology in a retry after the node was deleted', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: WITH_TOPOLOGY })
    await aNode(apiServer, 'node-a', { zone: 'a' })
    driver.setReplies(failCreateVolume('UNAVAILABLE'))
    await provision({ selectedNode: 'node-a' })
    await apiServer.delete('/api/v1/nodes/node-a')
    await apiServer.delete('/apis/storage.k8s.io/v1/csinodes/node-a')
    await new Promise((resolve) => setImmediate(resolve))
    await provision({ selectedNode: 'node-a' })
    expect(driver.createRequests[1]!.accessibilityRequirements).toEqual(
      driver.createRequests[0]!.accessibilityRequirements,
    )
    driver.setReplies(failCreateVolume('INTERNAL'))
    await provision({ selectedNode: 'node-a' }) // a final error discards the recorded topology
    expect(await provision({ selectedNode: 'node-a' })).toMatchObject({ failure: 'reschedule' })
    expect(driver.createRequests).toHaveLength(3)
  })

  it('PROV-9 recomputes the topology if another node is selected before the first call', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({
      facts: WITH_TOPOLOGY,
      options: { strictTopology: true },
    })
    await aNode(apiServer, 'node-a', { zone: 'a' })
    await aNode(apiServer, 'node-b', { zone: 'b' })
    const storageClass = aClass({
      'csi.storage.k8s.io/provisioner-secret-name': 'late',
      'csi.storage.k8s.io/provisioner-secret-namespace': 'default',
    })
    expect(await provision({ storageClass, selectedNode: 'node-a' })).toMatchObject({ failure: 'noChange' })
    await apiServer.post(SECRETS, { metadata: { name: 'late' }, stringData: { k: 'v' } })
    volumeOf(await provision({ storageClass, selectedNode: 'node-b' }))
    expect(driver.createRequests[0]!.accessibilityRequirements?.requisite).toMatchObject([{ segments: { zone: 'b' } }])
  })
})

describe('attributes of created volumes', () => {
  const gold = { metadata: { name: 'gold' }, driverName: 'disk.example.com', parameters: { iops: '5000', tier: 'g' } }

  it('VAC-3 passes the attributes class as mutable parameters and sets it on the volume', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: WITH_MODIFY_VOLUME })
    await apiServer.post(VACS, gold)
    const claim = aClaim({ volumeAttributesClassName: 'gold' })
    const { spec } = volumeOf(await provision({ claim, storageClass: aClass({ tier: 's' }) }))
    expect(driver.createRequests[0]).toMatchObject({ parameters: { tier: 's' }, mutableParameters: gold.parameters })
    expect(spec.volumeAttributesClassName).toBe('gold')
  })

  it('SYS-16 reads the attributes class from a cache', async () => {
    let reads = 0
    const { apiServer, provision, driver, caches, signal } = await createProvisionerFixture({
      facts: WITH_MODIFY_VOLUME,
      wrapClient: (client) => ({
        ...client,
        get: (kind, ...args) => {
          if ((kind as Kind) === volumeAttributesClassKind) reads++
          return client.get(kind, ...args)
        },
      }),
    })
    await apiServer.post(VACS, gold)
    const claim = aClaim({ volumeAttributesClassName: 'gold' })
    volumeOf(await provision({ claim }))
    await caches.of(volumeAttributesClassKind).whenSynced(signal)
    for (let volume = 0; volume < 10; volume++) volumeOf(await provision({ claim }))
    expect(reads).toBe(1) // before the cache was synced
    expect(driver.createRequests.map(({ mutableParameters }) => mutableParameters)).toEqual(
      Array(11).fill(gold.parameters),
    )
  })

  it('VAC-3 starts no watch of attributes classes before a claim names one', async () => {
    const { provision, caches } = await createProvisionerFixture({ facts: WITH_MODIFY_VOLUME })
    volumeOf(await provision())
    expect(caches.all().map(({ kind }) => kind)).not.toContain(volumeAttributesClassKind)
  })

  it('VAC-3 waits for a missing class and rejects a class of another driver', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: WITH_MODIFY_VOLUME })
    const claim = aClaim({ volumeAttributesClassName: 'gold' })
    expect(await provision({ claim })).toMatchObject({
      failure: 'noChange',
      message: expect.stringContaining('"gold"'),
    })
    await apiServer.post(VACS, { ...gold, driverName: 'other.example.com' })
    expect(await provision({ claim })).toMatchObject({
      failure: 'final',
      message:
        'VAC gold referenced in PVC is for driver other.example.com which does not match driver name disk.example.com',
    })
    expect(driver.createRequests).toEqual([])
  })

  it.each([
    ['VolumeAttributesClass', { volumeAttributesClassName: 'gold' }, 'the VolumeAttributesClass "gold"'],
    ['VolumeAttributesClass', { volumeAttributesClassName: 'missing' }, 'the VolumeAttributesClass "missing"'],
    ['VolumeProvisionedIO', { resources: { requests: { storage: '1Gi', iops: '500' } } }, '500 iops'],
    ['VolumeProvisionedIO', { resources: { requests: { storage: '1Gi', throughput: '9Mi' } } }, '9Mi throughput'],
  ])('VAC-12 PIO-1 with %s=false, creates no volume for a claim with %j', async (gate, spec, requested) => {
    const options = { gates: parseFeatureGates(`${gate}=false`) }
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: WITH_MODIFY_VOLUME, options })
    await apiServer.post(VACS, gold)
    expect(await provision({ claim: aClaim(spec) })).toMatchObject({
      failure: 'noChange',
      message: expect.stringMatching(`requests ${requested}, and the feature gate ${gate} is disabled`),
    })
    expect(driver.createRequests).toEqual([])
    expect(await provision()).toMatchObject({ is: 'provisioned' })
  })

  it.each([
    ['iops', '200', 'provisioned-iops-on-create', '100'],
    ['throughput', '20', 'provisioned-throughput-on-create', '30MiB/s'],
  ])(
    'PIO-2 rejects %s "%s" of the attributes class with %s "%s" of the storage class, unless the claim requests it',
    async (key, value, parameter, onCreate) => {
      const { apiServer, provision, driver } = await createProvisionerFixture({ facts: WITH_MODIFY_VOLUME })
      await apiServer.post(VACS, { ...gold, parameters: { [key]: value } })
      const storageClass = aClass({ [parameter]: onCreate })
      const claim = aClaim({ volumeAttributesClassName: 'gold' })
      expect(await provision({ claim, storageClass })).toMatchObject({
        failure: 'infeasible',
        message: expect.stringContaining(
          `specifies ${key} "${value}", but its StorageClass specifies ${parameter} "${onCreate}"`,
        ),
      })
      expect(driver.createRequests).toEqual([])
      const requests = { storage: '1Gi', [key]: key === 'iops' ? value : `${value}Mi` }
      const claimWithRequest = aClaim({ volumeAttributesClassName: 'gold', resources: { requests } })
      expect(await provision({ claim: claimWithRequest, storageClass })).toMatchObject({ is: 'provisioned' })
      expect(await provision({ claim, storageClass: aClass({ [parameter]: value }) })).toMatchObject({
        is: 'provisioned',
      })
    },
  )

  it('PIO-1 passes iops and throughput of the claim and records them in the capacity of the volume', async () => {
    const { provision, driver } = await createProvisionerFixture({ facts: WITH_MODIFY_VOLUME })
    const claim = aClaim({ resources: { requests: { storage: '1Gi', iops: '3k', throughput: '100Mi' } } })
    const storageClass = aClass({ 'provisioned-iops-on-create': '1', 'provisioned-throughput-on-create': '1', a: 'b' })
    const { spec } = volumeOf(await provision({ claim, storageClass }))
    expect(driver.createRequests[0]).toMatchObject({
      parameters: { a: 'b' },
      mutableParameters: { iops: '3000', throughput: '100' },
    })
    expect(Object.keys(driver.createRequests[0]!.parameters)).toEqual(['a'])
    expect(spec.capacity).toEqual({ storage: '1Gi', iops: '3k', throughput: '100Mi' })
  })

  it.each<[string, Record<string, string>, object]>([
    ['on-create defaults', { 'provisioned-iops-on-create': '100', 'provisioned-throughput-on-create': '20' }, {}],
    ['storage class parameters', { iops: '100', throughput: '20Mi' }, {}],
    ['an attributes class', { 'provisioned-iops-on-create': '100' }, { volumeAttributesClassName: 'bronze' }],
  ])('PIO-2 PIO-4 records iops and throughput from %s in the capacity of the volume', async (_, parameters, spec) => {
    const { apiServer, provision } = await createProvisionerFixture({ facts: WITH_MODIFY_VOLUME })
    const bronze = { iops: '100', throughput: '20', tier: 'b' }
    await apiServer.post(VACS, { ...gold, metadata: { name: 'bronze' }, parameters: bronze })
    const volume = volumeOf(await provision({ claim: aClaim(spec), storageClass: aClass(parameters) }))
    expect(volume.spec.capacity).toEqual({ storage: '100', iops: '100', throughput: '20Mi' })
  })

  it('PIO-4 records no amount for a parameter that is not an amount, or if the gate is disabled', async () => {
    const storageClass = aClass({ iops: 'burstable', throughput: '0' })
    const { provision } = await createProvisionerFixture({ facts: WITH_MODIFY_VOLUME })
    expect(volumeOf(await provision({ storageClass })).spec.capacity).toEqual({ storage: '100' })
    const options = { gates: parseFeatureGates('VolumeProvisionedIO=false') }
    const withoutGate = await createProvisionerFixture({ facts: WITH_MODIFY_VOLUME, options })
    const withIops = aClass({ iops: '100' })
    expect(volumeOf(await withoutGate.provision({ storageClass: withIops })).spec.capacity).toEqual({ storage: '100' })
  })

  it('SYS-5 omits iops and throughput from the capacity on other API servers', async () => {
    const wrapClient = (client: Client) => ({ ...client, commitsAtomically: async () => false })
    const { provision } = await createProvisionerFixture({ facts: WITH_MODIFY_VOLUME, wrapClient })
    const claim = aClaim({ resources: { requests: { storage: '1Gi', iops: '3k' } } })
    expect(volumeOf(await provision({ claim })).spec.capacity).toEqual({ storage: '1Gi' })
  })

  it('PIO-1 returns infeasible for conflicting values of one attribute', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: WITH_MODIFY_VOLUME })
    await apiServer.post(VACS, gold)
    const claim = aClaim({
      volumeAttributesClassName: 'gold',
      resources: { requests: { storage: '1Gi', iops: '3k' } },
    })
    expect(await provision({ claim })).toMatchObject({
      failure: 'infeasible',
      message: expect.stringMatching(/3k iops.*iops "5000"/),
    })
    expect(driver.createRequests).toEqual([])
  })
})

describe('deletion of volumes', () => {
  const aVolume = (metadata: object = {}, spec: object = {}) =>
    ({
      metadata: { name: 'pvc-uid-1', ...metadata },
      spec: {
        capacity: { storage: '1Gi' },
        csi: { driver: 'disk.example.com', volumeHandle: 'v-1' },
        storageClassName: 'fast',
        claimRef: { namespace: 'default', name: 'orders' },
        ...spec,
      },
    }) as never
  const SECRET_PARAMETERS = {
    'csi.storage.k8s.io/provisioner-secret-name': 'creds',
    'csi.storage.k8s.io/provisioner-secret-namespace': 'default',
  }
  const secretAnnotations = (name: string, namespace: string) => ({
    annotations: {
      'volume.kubernetes.io/provisioner-deletion-secret-name': name,
      'volume.kubernetes.io/provisioner-deletion-secret-namespace': namespace,
    },
  })
  async function createFixtureWithSecrets(options: Parameters<typeof createProvisionerFixture>[0] = {}) {
    const fixture = await createProvisionerFixture(options)
    const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
    await fixture.apiServer.post(CLASSES, {
      metadata: { name: 'fast' },
      provisioner: 'disk.example.com',
      parameters: SECRET_PARAMETERS,
    })
    await fixture.apiServer.post(SECRETS, { metadata: { name: 'creds' }, stringData: { token: 'of-the-class' } })
    await fixture.apiServer.post(SECRETS, { metadata: { name: 'noted' }, stringData: { token: 'of-the-volume' } })
    return fixture
  }

  it('PROV-14 calls DeleteVolume and owns the volumes of the driver', async () => {
    const { provisioner, driver, signal } = await createProvisionerFixture()
    expect(await provisioner.delete(aVolume(), signal)).toEqual({ is: 'deleted' })
    expect(driver.deleteRequests).toMatchObject([{ volumeId: 'v-1', secrets: {} }])
    expect(provisioner.owns(aVolume())).toBe(true)
    expect(provisioner.owns(aVolume({}, { csi: { driver: 'other', volumeHandle: 'x' } }))).toBe(false)
    expect(provisioner.owns(aVolume({}, { csi: undefined, hostPath: { path: '/' } }))).toBe(false)
  })

  it('PROV-14 returns a failure for volumes of another driver and for volumes without a CSI source', async () => {
    const { provisioner, driver, signal } = await createProvisionerFixture()
    const foreignResult = await provisioner.delete(aVolume({}, { csi: { driver: 'other', volumeHandle: 'x' } }), signal)
    const message = expect.stringContaining('belongs to the CSI driver other')
    expect(foreignResult).toEqual({ is: 'failed', message, isForeign: true })
    const nonCsiResult = await provisioner.delete(aVolume({}, { csi: undefined }), signal)
    expect(nonCsiResult).toMatchObject({ is: 'failed', isForeign: true })
    expect(driver.deleteRequests).toEqual([])
  })

  it('PROV-16 prefers credentials of the process to those of the volume and of the class', async () => {
    const withProcessCredentials = await createFixtureWithSecrets({
      options: { credentials: () => ({ token: 'own' }) },
    })
    await withProcessCredentials.provisioner.delete(
      aVolume(secretAnnotations('noted', 'default')),
      withProcessCredentials.signal,
    )
    expect(withProcessCredentials.driver.deleteRequests[0]!.secrets).toEqual({ token: 'own' })

    const { provisioner, driver, signal } = await createFixtureWithSecrets()
    await provisioner.delete(aVolume(secretAnnotations('noted', 'default')), signal)
    await provisioner.delete(aVolume(), signal)
    await provisioner.delete(aVolume(secretAnnotations('', '')), signal) // annotated as needing no secret
    expect(driver.deleteRequests.map(({ secrets }) => secrets)).toEqual([
      { token: 'of-the-volume' },
      { token: 'of-the-class' },
      {},
    ])
  })

  it('PROV-16 deletes without missing credentials and explains the failure if the driver requires them', async () => {
    const { provisioner, driver, signal } = await createFixtureWithSecrets()
    expect(await provisioner.delete(aVolume(secretAnnotations('gone', 'default')), signal)).toEqual({ is: 'deleted' })
    driver.setReplies({
      deleteVolume: async () => {
        throw new CsiError('UNAUTHENTICATED', 'no token')
      },
    })
    const result = await provisioner.delete(aVolume({}, { storageClassName: 'removed' }), signal)
    expect(result).toMatchObject({
      is: 'failed',
      message: expect.stringMatching(
        /no token\. No credentials were sent, because its class "removed" does not exist.*--provisioner-secret-dir/,
      ),
    })
  })

  it('PROV-14 returns a failure if the API server cannot return the secret', async () => {
    const wrapClient = (client: any) => ({
      ...client,
      get: async (kind: any, ...args: any[]) => {
        if (kind.kind !== 'Secret') return client.get(kind, ...args)
        throw new ApiError(503, 'ServiceUnavailable', 'overloaded')
      },
    })
    const { provisioner, driver, signal } = await createFixtureWithSecrets({ wrapClient })
    expect(await provisioner.delete(aVolume(), signal)).toMatchObject({
      is: 'failed',
      message: expect.stringContaining('overloaded'),
    })
    expect(driver.deleteRequests).toEqual([])
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
