// Tests the mutable parameters that the provisioner passes to CreateVolume: attributes classes, iops and throughput.
import { describe, expect, it } from 'vitest'
import { parseFeatureGates } from '../../../api/feature-gates.ts'
import type { Kind } from '../../../api/kind.ts'
import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import type { Client } from '../../../client/index.ts'
import { aClaim, aClass, createProvisionerFixture, volumeOf } from './provisioner.fixture.ts'
import { factsOf } from './stub-driver.fixture.ts'

const VACS = '/apis/storage.k8s.io/v1/volumeattributesclasses'
const MODIFY_VOLUME_FACTS = factsOf(['CREATE_DELETE_VOLUME', 'MODIFY_VOLUME'])

describe('attributes of created volumes', () => {
  const gold = { metadata: { name: 'gold' }, driverName: 'disk.example.com', parameters: { iops: '5000', tier: 'g' } }

  it('VAC-3 passes the attributes class as mutable parameters and sets it on the volume', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: MODIFY_VOLUME_FACTS })
    await apiServer.post(VACS, gold)
    const claim = aClaim({ volumeAttributesClassName: 'gold' })
    const { spec } = volumeOf(await provision({ claim, storageClass: aClass({ tier: 's' }) }))
    expect(driver.createRequests[0]).toMatchObject({ parameters: { tier: 's' }, mutableParameters: gold.parameters })
    expect(spec.volumeAttributesClassName).toBe('gold')
  })

  it('VAC-3 reads the attributes class from a cache', async () => {
    let reads = 0
    const { apiServer, provision, driver, caches, signal } = await createProvisionerFixture({
      facts: MODIFY_VOLUME_FACTS,
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
    const { provision, caches } = await createProvisionerFixture({ facts: MODIFY_VOLUME_FACTS })
    volumeOf(await provision())
    expect(caches.all().map(({ kind }) => kind)).not.toContain(volumeAttributesClassKind)
  })

  it('VAC-3 waits for a missing class and rejects a class of another driver', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: MODIFY_VOLUME_FACTS })
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
    [{ volumeAttributesClassName: 'gold' }, 'VolumeAttributesClass', 'the VolumeAttributesClass "gold"'],
    [{ volumeAttributesClassName: 'missing' }, 'VolumeAttributesClass', 'the VolumeAttributesClass "missing"'],
    [{ resources: { requests: { storage: '1Gi', iops: '500' } } }, 'VolumeProvisionedIO', '500 iops'],
    [{ resources: { requests: { storage: '1Gi', throughput: '9Mi' } } }, 'VolumeProvisionedIO', '9Mi throughput'],
  ])('VAC-12 PIO-1 creates no volume for a claim with %j if %s is disabled', async (spec, gate, requestText) => {
    const options = { gates: parseFeatureGates(`${gate}=false`) }
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: MODIFY_VOLUME_FACTS, options })
    await apiServer.post(VACS, gold)
    expect(await provision({ claim: aClaim(spec) })).toMatchObject({
      failure: 'noChange',
      message: expect.stringMatching(`requests ${requestText}, but the feature gate ${gate} is disabled`),
    })
    expect(driver.createRequests).toEqual([])
    expect(await provision()).toMatchObject({ is: 'provisioned' })
  })

  it.each([
    ['iops', '200', 'provisioned-iops-on-create', '100'],
    ['throughput', '20', 'provisioned-throughput-on-create', '30MiB/s'],
  ])(
    'PIO-2 rejects an attributes class whose %s "%s" conflicts with %s "%s" of the storage class, unless the claim requests that value',
    async (key, value, parameter, onCreate) => {
      const { apiServer, provision, driver } = await createProvisionerFixture({ facts: MODIFY_VOLUME_FACTS })
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

  it("PIO-1 passes iops and throughput of the claim and records them in the volume's capacity", async () => {
    const { provision, driver } = await createProvisionerFixture({ facts: MODIFY_VOLUME_FACTS })
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
  ])("PIO-2 PIO-4 records iops and throughput from %s in the volume's capacity", async (_, parameters, spec) => {
    const { apiServer, provision } = await createProvisionerFixture({ facts: MODIFY_VOLUME_FACTS })
    const bronze = { iops: '100', throughput: '20', tier: 'b' }
    await apiServer.post(VACS, { ...gold, metadata: { name: 'bronze' }, parameters: bronze })
    const volume = volumeOf(await provision({ claim: aClaim(spec), storageClass: aClass(parameters) }))
    expect(volume.spec.capacity).toEqual({ storage: '100', iops: '100', throughput: '20Mi' })
  })

  it('PIO-4 records no amount for a parameter that is not an amount, or if the gate is disabled', async () => {
    const storageClass = aClass({ iops: 'burstable', throughput: '0' })
    const { provision } = await createProvisionerFixture({ facts: MODIFY_VOLUME_FACTS })
    expect(volumeOf(await provision({ storageClass })).spec.capacity).toEqual({ storage: '100' })
    const options = { gates: parseFeatureGates('VolumeProvisionedIO=false') }
    const fixtureWithoutGate = await createProvisionerFixture({ facts: MODIFY_VOLUME_FACTS, options })
    const classWithIops = aClass({ iops: '100' })
    expect(volumeOf(await fixtureWithoutGate.provision({ storageClass: classWithIops })).spec.capacity).toEqual({
      storage: '100',
    })
  })

  it('SYS-5 omits iops from the capacity on API servers without atomic commits', async () => {
    const wrapClient = (client: Client) => ({ ...client, commitsAtomically: async () => false })
    const { provision } = await createProvisionerFixture({ facts: MODIFY_VOLUME_FACTS, wrapClient })
    const claim = aClaim({ resources: { requests: { storage: '1Gi', iops: '3k' } } })
    expect(volumeOf(await provision({ claim })).spec.capacity).toEqual({ storage: '1Gi' })
  })

  it('PIO-1 returns infeasible for conflicting values of one attribute', async () => {
    const { apiServer, provision, driver } = await createProvisionerFixture({ facts: MODIFY_VOLUME_FACTS })
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
