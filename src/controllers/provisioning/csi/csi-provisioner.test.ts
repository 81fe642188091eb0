// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how classes write templates
import { describe, expect, it } from 'vitest'
import { parseFeatureGates } from '../../../api/feature-gates.ts'
import type { Kind } from '../../../api/kind.ts'
import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import type { Client } from '../../../client/index.ts'
import { CSI_CODES, CsiError, type CsiFailureCode } from '../../../csi/index.ts'
import type { Provisioned } from '../provisioner.ts'
import { aClaim, aClass, createProvisionerFixture } from './provisioner.fixture.ts'
import { factsOf } from './stub-driver.fixture.ts'

const VACS = '/apis/storage.k8s.io/v1/volumeattributesclasses'
const SECRETS = '/api/v1/namespaces/default/secrets'
const MODIFYING = factsOf(['CREATE_DELETE_VOLUME', 'MODIFY_VOLUME'])
const PLACED = factsOf(['CREATE_DELETE_VOLUME'], ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'])

function provisioned(answer: Provisioned) {
  if (answer.is !== 'provisioned') throw new Error(`not provisioned: ${JSON.stringify(answer)}`)
  return answer.volume
}
const fails = (code: CsiFailureCode, message = 'no') => ({
  createVolume: async () => {
    throw new CsiError(code, message)
  },
})

describe('CreateVolume', () => {
  it('PROV-9 is called with claim and class, and its reply becomes the volume', async () => {
    const { provision, driver } = await createProvisionerFixture({ options: { defaultFsType: 'ext4' } })
    driver.answer({
      createVolume: async () => ({ volume: { volumeId: 'v-1', capacityBytes: 200n, volumeContext: { share: 's' } } }),
    })
    const storageClass = aClass({ tier: 'gold' }, { mountOptions: ['noatime'] })
    const { spec } = provisioned(await provision({ storageClass }))

    expect(driver.created).toHaveLength(1)
    expect(driver.created[0]).toMatchObject({
      name: 'pvc-uid-1',
      capacityRange: { requiredBytes: 100n, limitBytes: 0n },
      parameters: { tier: 'gold' },
      volumeCapabilities: [{ accessType: { case: 'mount', value: { fsType: 'ext4', mountFlags: ['noatime'] } } }],
      secrets: {},
      mutableParameters: {},
    })
    expect(driver.created[0]!.accessibilityRequirements).toBeUndefined()
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

  it('PROV-11 yields the requested size if the driver reports none', async () => {
    const { provision, driver } = await createProvisionerFixture()
    driver.answer({ createVolume: async () => ({ volume: { volumeId: 'v' } }) })
    const claim = aClaim({ resources: { requests: { storage: '1500M' } } })
    expect(provisioned(await provision({ claim })).spec.capacity).toEqual({ storage: '1500000000' })
    expect(driver.created[0]!.capacityRange?.requiredBytes).toBe(1_500_000_000n)
  })

  it('PROV-9 yields no fsType for a block device, and readOnly only with the option', async () => {
    const plain = await createProvisionerFixture({ options: { defaultFsType: 'ext4' } })
    const block = provisioned(await plain.provision({ claim: aClaim({ volumeMode: 'Block' }) }))
    expect(block.spec.csi?.fsType).toBeUndefined()
    expect(block.spec.volumeMode).toBe('Block')
    const readOnly = aClaim({ accessModes: ['ReadOnlyMany'] })
    expect(provisioned(await plain.provision({ claim: readOnly })).spec.csi?.readOnly).toBeUndefined()

    const marking = await createProvisionerFixture({ options: { controllerPublishReadOnly: true } })
    expect(provisioned(await marking.provision({ claim: readOnly })).spec.csi?.readOnly).toBe(true)
    const both = aClaim({ accessModes: ['ReadOnlyMany', 'ReadWriteOnce'] })
    expect(provisioned(await marking.provision({ claim: both })).spec.csi?.readOnly).toBeUndefined()
    expect(marking.driver.created[1]!.volumeCapabilities).toHaveLength(2)
  })

  it('PROV-9 yields secret references in the spec, and none in annotations', async () => {
    const { provision } = await createProvisionerFixture()
    const storageClass = aClass({
      'csi.storage.k8s.io/node-stage-secret-name': '${pvc.name}',
      'csi.storage.k8s.io/node-stage-secret-namespace': 'vault',
    })
    const volume = provisioned(await provision({ storageClass }))
    expect(volume.spec.csi?.nodeStageSecretRef).toEqual({ name: 'orders', namespace: 'vault' })
    expect(volume.spec.csi?.controllerExpandSecretRef).toBeUndefined()
    expect(volume.annotations).toBeUndefined()
  })

  it('PROV-9 passes the names of claim and volume with the option', async () => {
    const { provision, driver } = await createProvisionerFixture({ options: { extraCreateMetadata: true } })
    await provision()
    expect(driver.created[0]!.parameters).toEqual({
      'csi.storage.k8s.io/pvc/name': 'orders',
      'csi.storage.k8s.io/pvc/namespace': 'default',
      'csi.storage.k8s.io/pv/name': 'pvc-uid-1',
    })
  })
})

describe('a request without a call', () => {
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
      'a size beyond any',
      { claim: aClaim({ resources: { requests: { storage: '1e30' } } }) },
      'final',
      'exceeds the maximum size',
    ],
    [
      'a source without the ability to copy',
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
      'a secret template that names nothing',
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
      'a secret that is not there',
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
      'attributes without the ability to change them',
      { claim: aClaim({ volumeAttributesClassName: 'gold' }) },
      'final',
      'MODIFY_VOLUME capability is not reported',
    ],
    [
      'iops without the ability to change them',
      { claim: aClaim({ resources: { requests: { storage: '1', iops: '100' } } }) },
      'final',
      'iops and throughput of claims',
    ],
  ])('PROV-10 %s: the driver is not called', async (_, request, how, message) => {
    const { provision, driver } = await createProvisionerFixture()
    const answer = await provision(request as never)
    expect(answer).toMatchObject({ is: 'failed', how, because: expect.stringContaining(message) })
    expect(driver.created).toEqual([])
  })

  it('PROV-9 is rejected if the driver cannot create volumes', async () => {
    const { provision, driver } = await createProvisionerFixture({ facts: factsOf([]) })
    expect(await provision()).toMatchObject({
      is: 'failed',
      how: 'final',
      because: expect.stringContaining('CREATE_DELETE_VOLUME'),
    })
    expect(driver.created).toEqual([])
  })

  it('PROV-9 is left to a populator, with an event, for an unknown data source', async () => {
    const { provision, provisioner, driver, events, signal } = await createProvisionerFixture()
    const claim = aClaim({ dataSourceRef: { apiGroup: 'example.com', kind: 'Image', name: 'x' } })
    expect(await provision({ claim })).toMatchObject({ is: 'ignored' })
    expect(await provisioner.accepts!({ claim, storageClass: aClass(), selectedNode: undefined }, signal)).toBe(false)
    expect(events).toEqual([
      { type: 'Normal', reason: 'Provisioning', message: 'Assuming an external populator will provision the volume' },
    ])
    expect(driver.created).toEqual([])
  })

  it('PROV-12 does not change the unknown result of an earlier call', async () => {
    const { provision, driver } = await createProvisionerFixture()
    driver.answer(fails('UNAVAILABLE'))
    expect(await provision()).toMatchObject({ how: 'unfinished' })
    const broken = { storageClass: aClass({ 'csi.storage.k8s.io/x': '1' }) }
    expect(await provision(broken)).toMatchObject({ how: 'noChange' })
    driver.answer(fails('INTERNAL'))
    expect(await provision()).toMatchObject({ how: 'final' })
    expect(await provision(broken)).toMatchObject({ how: 'final' })
  })
})

describe('failures of the driver', () => {
  const finals = CSI_CODES.filter((code) => code !== 'OK')
  const MEANINGS: Partial<Record<CsiFailureCode, string>> = {
    CANCELLED: 'unfinished',
    DEADLINE_EXCEEDED: 'unfinished',
    UNAVAILABLE: 'unfinished',
    ABORTED: 'unfinished',
    INVALID_ARGUMENT: 'infeasible',
    ALREADY_EXISTS: 'noChange', // the error means that a volume exists
  }

  it.each(finals)('PROV-9 %s means what it means to other provisioners', async (code) => {
    const { provision, driver } = await createProvisionerFixture()
    driver.answer(fails(code, 'the reason'))
    const answer = await provision()
    expect(answer).toMatchObject({ is: 'failed', how: MEANINGS[code] ?? 'final' })
    expect(answer).toMatchObject({ because: expect.stringContaining('desc = the reason') })
  })

  it('PROV-9 return reschedule for exhausted storage on a selected node', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: PLACED })
    await aNode(apiServer, 'node-a', { zone: 'a' })
    driver.answer(fails('RESOURCE_EXHAUSTED'))
    expect(await provision({ selectedNode: 'node-a' })).toMatchObject({ how: 'reschedule' })
    expect(await provision()).toMatchObject({ how: 'final' })
  })

  it('PROV-11 delete a volume that is smaller than requested', async () => {
    const { provision, driver } = await createProvisionerFixture()
    driver.answer({ createVolume: async () => ({ volume: { volumeId: 'v', capacityBytes: 80n } }) })
    const answer = await provision()
    expect(answer).toMatchObject({ is: 'failed', how: 'final' })
    expect(answer).toMatchObject({ because: expect.stringContaining('capacity 80 less than requested capacity 100') })
    expect(driver.deleted.map(({ volumeId }) => volumeId)).toEqual(['v'])
  })

  it('PROV-12 return unfinished after five failed deletions of such a volume', async () => {
    const { provision, driver } = await createProvisionerFixture()
    driver.answer({
      createVolume: async () => ({ volume: { volumeId: 'v', capacityBytes: 80n } }),
      deleteVolume: async () => {
        throw new CsiError('INTERNAL', 'cannot')
      },
    })
    expect(await provision()).toMatchObject({
      how: 'unfinished',
      because: expect.stringContaining('Cleanup of volume pvc-uid-1 failed'),
    })
    expect(driver.deleted).toHaveLength(5)
  })

  it('PROV-12 return unfinished for a volume without an id', async () => {
    const { provision, driver } = await createProvisionerFixture()
    driver.answer({ createVolume: async () => ({ volume: {} }) })
    expect(await provision()).toMatchObject({ how: 'unfinished', because: expect.stringContaining('volume_id') })
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

describe('topology', () => {
  it('PROV-12 finds a volume that a crashed process created for a deleted node', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({
      facts: PLACED,
      options: { strictTopology: true },
    })
    await aNode(apiServer, 'node-b', { zone: 'b' })
    driver.answer({
      createVolume: async ({ accessibilityRequirements }) => {
        if (accessibilityRequirements) throw new CsiError('ALREADY_EXISTS', 'volume "pvc-uid-1" exists in zone a')
        return { volume: { volumeId: 'v', capacityBytes: 100n, accessibleTopology: [{ segments: { zone: 'a' } }] } }
      },
    })
    expect(await provision({ selectedNode: 'node-b' })).toMatchObject({
      is: 'provisioned',
      volume: { spec: { csi: { volumeHandle: 'v' } }, unwanted: 'an earlier try created it for another node' },
    })
    driver.answer(fails('ALREADY_EXISTS'))
    expect(await provision({ selectedNode: 'node-b' })).toMatchObject({ is: 'failed', how: 'noChange' })
  })

  it('PROV-9 is passed to the driver, and its reply becomes the node affinity', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({
      facts: PLACED,
      options: { strictTopology: true },
    })
    await aNode(apiServer, 'node-a', { zone: 'a' })
    await aNode(apiServer, 'node-b', { zone: 'b' })
    driver.answer({
      createVolume: async () => ({
        volume: { volumeId: 'v', accessibleTopology: [{ segments: { zone: 'b', rack: '1' } }, {}] },
      }),
    })
    const { spec } = provisioned(await provision({ selectedNode: 'node-b' }))
    expect(driver.created[0]!.accessibilityRequirements).toMatchObject({
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

  it('PROV-9 of empty replies yields no affinity', async () => {
    const { provision, driver } = await createProvisionerFixture({
      facts: PLACED,
      options: { immediateTopology: false },
    })
    driver.answer({ createVolume: async () => ({ volume: { volumeId: 'v', accessibleTopology: [{}, {}] } }) })
    expect(provisioned(await provision()).spec.nodeAffinity).toBeUndefined()
  })

  it('PROV-9 is the same in a retry after the node was deleted', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: PLACED })
    await aNode(apiServer, 'node-a', { zone: 'a' })
    driver.answer(fails('UNAVAILABLE'))
    await provision({ selectedNode: 'node-a' })
    await apiServer.delete('/api/v1/nodes/node-a')
    await apiServer.delete('/apis/storage.k8s.io/v1/csinodes/node-a')
    await new Promise((resolve) => setImmediate(resolve))
    await provision({ selectedNode: 'node-a' })
    expect(driver.created[1]!.accessibilityRequirements).toEqual(driver.created[0]!.accessibilityRequirements)
    driver.answer(fails('INTERNAL'))
    await provision({ selectedNode: 'node-a' }) // a final error discards the remembered topology
    expect(await provision({ selectedNode: 'node-a' })).toMatchObject({ how: 'reschedule' })
    expect(driver.created).toHaveLength(3)
  })

  it('PROV-9 is computed again for another node before the first call', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({
      facts: PLACED,
      options: { strictTopology: true },
    })
    await aNode(apiServer, 'node-a', { zone: 'a' })
    await aNode(apiServer, 'node-b', { zone: 'b' })
    const storageClass = aClass({
      'csi.storage.k8s.io/provisioner-secret-name': 'late',
      'csi.storage.k8s.io/provisioner-secret-namespace': 'default',
    })
    expect(await provision({ storageClass, selectedNode: 'node-a' })).toMatchObject({ how: 'noChange' })
    await apiServer.post(SECRETS, { metadata: { name: 'late' }, stringData: { k: 'v' } })
    provisioned(await provision({ storageClass, selectedNode: 'node-b' }))
    expect(driver.created[0]!.accessibilityRequirements?.requisite).toMatchObject([{ segments: { zone: 'b' } }])
  })
})

describe('attributes', () => {
  const gold = { metadata: { name: 'gold' }, driverName: 'disk.example.com', parameters: { iops: '5000', tier: 'g' } }

  it('VAC-3 are passed as mutable parameters, and the volume names the class', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: MODIFYING })
    await apiServer.post(VACS, gold)
    const claim = aClaim({ volumeAttributesClassName: 'gold' })
    const { spec } = provisioned(await provision({ claim, storageClass: aClass({ tier: 's' }) }))
    expect(driver.created[0]).toMatchObject({ parameters: { tier: 's' }, mutableParameters: gold.parameters })
    expect(spec.volumeAttributesClassName).toBe('gold')
  })

  it('SYS-16 come from a watched class', async () => {
    let reads = 0
    const { apiServer, provision, driver, caches, signal } = await createProvisionerFixture({
      facts: MODIFYING,
      around: (client) => ({
        ...client,
        get: (kind, ...given) => {
          if ((kind as Kind) === volumeAttributesClassKind) reads++
          return client.get(kind, ...given)
        },
      }),
    })
    await apiServer.post(VACS, gold)
    const claim = aClaim({ volumeAttributesClassName: 'gold' })
    provisioned(await provision({ claim }))
    await caches.of(volumeAttributesClassKind).whenSynced(signal)
    for (let volume = 0; volume < 10; volume++) provisioned(await provision({ claim }))
    expect(reads).toBe(1) // before the watch started
    expect(driver.created.map(({ mutableParameters }) => mutableParameters)).toEqual(Array(11).fill(gold.parameters))
  })

  it('VAC-3 cause no watch before a claim names a class', async () => {
    const { provision, caches } = await createProvisionerFixture({ facts: MODIFYING })
    provisioned(await provision())
    expect(caches.all().map(({ kind }) => kind)).not.toContain(volumeAttributesClassKind)
  })

  it('VAC-3 wait for a missing class, reject one of another driver, and are ignored without the gate', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: MODIFYING })
    const claim = aClaim({ volumeAttributesClassName: 'gold' })
    expect(await provision({ claim })).toMatchObject({ how: 'noChange', because: expect.stringContaining('"gold"') })
    await apiServer.post(VACS, { ...gold, driverName: 'other.example.com' })
    expect(await provision({ claim })).toMatchObject({
      how: 'final',
      because:
        'VAC gold referenced in PVC is for driver other.example.com which does not match driver name disk.example.com',
    })
    expect(driver.created).toEqual([])

    const off = await createProvisionerFixture({ options: { gates: parseFeatureGates('VolumeAttributesClass=false') } })
    expect(provisioned(await off.provision({ claim })).spec.volumeAttributesClassName).toBeUndefined()
  })

  it('PIO-1 of the claim are passed and recorded in the capacity of the volume', async () => {
    const { provision, driver } = await createProvisionerFixture({ facts: MODIFYING })
    const claim = aClaim({ resources: { requests: { storage: '1Gi', iops: '3k', throughput: '100Mi' } } })
    const storageClass = aClass({ 'provisioned-iops-on-create': '1', 'provisioned-throughput-on-create': '1', a: 'b' })
    const { spec } = provisioned(await provision({ claim, storageClass }))
    expect(driver.created[0]).toMatchObject({
      parameters: { a: 'b' },
      mutableParameters: { iops: '3000', throughput: '100' },
    })
    expect(Object.keys(driver.created[0]!.parameters)).toEqual(['a'])
    expect(spec.capacity).toEqual({ storage: '1Gi', iops: '3k', throughput: '100Mi' })
  })

  it('SYS-5 are omitted from the capacity on other API servers', async () => {
    const around = (client: Client) => ({ ...client, commitsAtomically: async () => false })
    const { provision } = await createProvisionerFixture({ facts: MODIFYING, around })
    const claim = aClaim({ resources: { requests: { storage: '1Gi', iops: '3k' } } })
    expect(provisioned(await provision({ claim })).spec.capacity).toEqual({ storage: '1Gi' })
  })

  it('PIO-1 with two values for one key are infeasible', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: MODIFYING })
    await apiServer.post(VACS, gold)
    const claim = aClaim({
      volumeAttributesClassName: 'gold',
      resources: { requests: { storage: '1Gi', iops: '3k' } },
    })
    expect(await provision({ claim })).toMatchObject({
      how: 'infeasible',
      because: expect.stringMatching(/3k iops.*iops "5000"/),
    })
    expect(driver.created).toEqual([])
  })
})

describe('deleting a volume', () => {
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
  const NAMED = {
    'csi.storage.k8s.io/provisioner-secret-name': 'creds',
    'csi.storage.k8s.io/provisioner-secret-namespace': 'default',
  }
  const annotated = (name: string, namespace: string) => ({
    annotations: {
      'volume.kubernetes.io/provisioner-deletion-secret-name': name,
      'volume.kubernetes.io/provisioner-deletion-secret-namespace': namespace,
    },
  })
  async function withSecrets(options: Parameters<typeof createProvisionerFixture>[0] = {}) {
    const fixture = await createProvisionerFixture(options)
    const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
    await fixture.apiServer.post(CLASSES, {
      metadata: { name: 'fast' },
      provisioner: 'disk.example.com',
      parameters: NAMED,
    })
    await fixture.apiServer.post(SECRETS, { metadata: { name: 'creds' }, stringData: { token: 'of-the-class' } })
    await fixture.apiServer.post(SECRETS, { metadata: { name: 'noted' }, stringData: { token: 'of-the-volume' } })
    return fixture
  }

  it('PROV-14 calls DeleteVolume, and owns volumes of the driver', async () => {
    const { provisioner, driver, signal } = await createProvisionerFixture()
    expect(await provisioner.delete(aVolume(), signal)).toEqual({ is: 'deleted' })
    expect(driver.deleted).toMatchObject([{ volumeId: 'v-1', secrets: {} }])
    expect(provisioner.owns(aVolume())).toBe(true)
    expect(provisioner.owns(aVolume({}, { csi: { driver: 'other', volumeHandle: 'x' } }))).toBe(false)
    expect(provisioner.owns(aVolume({}, { csi: undefined, hostPath: { path: '/' } }))).toBe(false)
  })

  it('PROV-14 ignores volumes of another driver or without CSI', async () => {
    const { provisioner, driver, signal } = await createProvisionerFixture()
    const other = await provisioner.delete(aVolume({}, { csi: { driver: 'other', volumeHandle: 'x' } }), signal)
    const because = expect.stringContaining('belongs to the CSI driver other')
    expect(other).toEqual({ is: 'failed', because, isForeign: true })
    const none = await provisioner.delete(aVolume({}, { csi: undefined }), signal)
    expect(none).toMatchObject({ is: 'failed', isForeign: true })
    expect(driver.deleted).toEqual([])
  })

  it('PROV-16 uses credentials of the process, of the volume, of the class, in this order', async () => {
    const own = await withSecrets({ options: { credentials: () => ({ token: 'own' }) } })
    await own.provisioner.delete(aVolume(annotated('noted', 'default')), own.signal)
    expect(own.driver.deleted[0]!.secrets).toEqual({ token: 'own' })

    const { provisioner, driver, signal } = await withSecrets()
    await provisioner.delete(aVolume(annotated('noted', 'default')), signal)
    await provisioner.delete(aVolume(), signal)
    await provisioner.delete(aVolume(annotated('', '')), signal) // its provisioner recorded that it needs no secret
    expect(driver.deleted.map(({ secrets }) => secrets)).toEqual([
      { token: 'of-the-volume' },
      { token: 'of-the-class' },
      {},
    ])
  })

  it('PROV-16 continues without missing credentials, and explains it if the driver requires them', async () => {
    const { provisioner, driver, signal } = await withSecrets()
    expect(await provisioner.delete(aVolume(annotated('gone', 'default')), signal)).toEqual({ is: 'deleted' })
    driver.answer({
      deleteVolume: async () => {
        throw new CsiError('UNAUTHENTICATED', 'who are you')
      },
    })
    const answer = await provisioner.delete(aVolume({}, { storageClassName: 'removed' }), signal)
    expect(answer).toMatchObject({
      is: 'failed',
      because: expect.stringMatching(
        /who are you\. No credentials were sent, because its class "removed" does not exist.*--provisioner-secret-dir/,
      ),
    })
  })

  it('PROV-14 fails if the secret cannot be read because the server fails', async () => {
    const around = (client: any) => ({
      ...client,
      get: async (kind: any, ...rest: any[]) => {
        if (kind.kind !== 'Secret') return client.get(kind, ...rest)
        throw new (await import('../../../api/status-error.ts')).ApiError(503, 'ServiceUnavailable', 'not now')
      },
    })
    const { provisioner, driver, signal } = await withSecrets({ around })
    expect(await provisioner.delete(aVolume(), signal)).toMatchObject({
      is: 'failed',
      because: expect.stringContaining('not now'),
    })
    expect(driver.deleted).toEqual([])
  })
})

describe('credentials', () => {
  it('PROV-16 come from the secret of the class, else from the process, and appear in no message', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({
      options: { credentials: () => ({ token: 'own-token' }) },
    })
    await provision()
    await apiServer.post(SECRETS, { metadata: { name: 'creds' }, stringData: { token: 'hunter2-token' } })
    const storageClass = aClass({
      'csi.storage.k8s.io/secret-name': 'creds',
      'csi.storage.k8s.io/secret-namespace': '${pvc.namespace}',
    })
    driver.answer(fails('UNAUTHENTICATED', 'token hunter2-token is not valid'))
    const answer = await provision({ storageClass })
    expect(driver.created.map(({ secrets }) => secrets)).toEqual([{ token: 'own-token' }, { token: 'hunter2-token' }])
    expect(JSON.stringify(answer)).not.toContain('hunter2')
    expect(answer).toMatchObject({ because: expect.stringContaining('token ***stripped*** is not valid') })
  })

  it('PROV-16 that are not text are rejected, naming the key', async () => {
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
      how: 'noChange',
      because: expect.stringContaining('key "blob" of secret creds in namespace default is not UTF-8 text'),
    })
  })
})

describe('two classes of one driver', () => {
  it('PROV-19 send different requests', async () => {
    const { provision, driver } = await createProvisionerFixture()
    await provision({ storageClass: aClass({ media: 'ssd', replicas: '3' }) })
    await provision({ storageClass: aClass({ media: 'tape' }) })
    expect(driver.created.map(({ parameters }) => parameters)).toEqual([
      { media: 'ssd', replicas: '3' },
      { media: 'tape' },
    ])
  })
})
