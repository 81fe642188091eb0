import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { allGatesOn, parseFeatureGates } from '../../../api/feature-gates.ts'
import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import { notFound } from '../../../api/status-error.ts'
import {
  type AttributesClassCache,
  composeParameters,
  omitOverridden,
  readMutableParameters,
  requestedAttributes,
} from './attributes.ts'

const NO_REQUESTS = { iops: undefined, throughput: undefined }
const aClaim = (requests: Record<string, string>, volumeAttributesClassName?: string) =>
  ({ metadata: {}, spec: { resources: { requests }, volumeAttributesClassName } }) as never

describe('requestedAttributes', () => {
  it('VAC-3 returns the attributes class and the requests of the claim, with throughput in bytes/s', () => {
    expect(requestedAttributes(aClaim({ storage: '1Gi', iops: '3k', throughput: '100' }, 'gold'), allGatesOn)).toEqual({
      className: 'gold',
      iops: '3k',
      throughput: '100Mi',
    })
    expect(requestedAttributes(aClaim({ storage: '1Gi' }, ''), allGatesOn)).toEqual({
      className: undefined,
      ...NO_REQUESTS,
    })
  })

  it('VAC-12 ignores attributes whose feature gate is disabled', () => {
    const claim = aClaim({ iops: '100' }, 'gold')
    const attributesWithoutClass = requestedAttributes(claim, parseFeatureGates('VolumeAttributesClass=false'))
    expect(attributesWithoutClass).toMatchObject({ className: undefined, iops: '100' })
    const attributesWithoutIo = requestedAttributes(claim, parseFeatureGates('VolumeProvisionedIO=false'))
    expect(attributesWithoutIo).toMatchObject({ className: 'gold', iops: undefined })
  })
})

describe('readMutableParameters', () => {
  const aGoldClass = (iops: string, metadata: object = {}) => ({
    metadata: { name: 'gold', uid: 'gold-uid', resourceVersion: '1', ...metadata },
    driverName: 'disk.example.com',
    parameters: { iops },
  })
  const healthyWatch = { isServed: true, lastEventAgeMs: () => 60_000 }

  /** Returns the parameters for the driver and the number of reads from the server. */
  async function readParametersWith(cache: Partial<AttributesClassCache>, storedClass?: object) {
    let reads = 0
    const client: any = {
      async get() {
        reads++
        if (!storedClass) throw notFound(volumeAttributesClassKind, 'gold')
        return storedClass
      },
    }
    const classes = { ...healthyWatch, get: () => undefined, ...cache }
    const deps = { client, attributesClasses: () => classes, driverName: 'disk.example.com' }
    const parameters = await readMutableParameters(
      { className: 'gold', ...NO_REQUESTS },
      deps,
      new AbortController().signal,
    )
    return { parameters, reads }
  }

  it('VAC-3 reads the attributes class from the cache', async () => {
    expect(await readParametersWith({ get: () => aGoldClass('1') })).toEqual({ parameters: { iops: '1' }, reads: 0 })
  })

  it('VAC-3 reads the class from the server if the cache does not contain it', async () => {
    expect(await readParametersWith({}, aGoldClass('2'))).toEqual({ parameters: { iops: '2' }, reads: 1 })
  })

  it.each([
    [
      'the cached class is being deleted',
      { get: () => aGoldClass('1', { deletionTimestamp: '2026-01-31T12:00:00Z' }) },
    ],
    ['the watch received no event for minutes', { get: () => aGoldClass('1'), lastEventAgeMs: () => 180_000 }],
  ])('VAC-3 reads the class from the server if %s, because it may have been recreated', async (_, cache) => {
    expect(await readParametersWith(cache, aGoldClass('2'))).toEqual({ parameters: { iops: '2' }, reads: 1 })
  })

  it.each([
    ['the class does not exist', {}],
    ['the server no longer serves attributes classes', { get: () => aGoldClass('1'), isServed: false }],
  ])('VAC-3 throws a retryable error if %s', async (_, cache) => {
    await expect(readParametersWith(cache)).rejects.toMatchObject({
      failure: 'noChange',
      message: expect.stringContaining('"gold"'),
    })
  })
})

describe('composeParameters', () => {
  it('PIO-1 returns class parameters unchanged, iops as a count and throughput in MiB/s rounded up', () => {
    expect(composeParameters({ tier: 'gold' }, { iops: '3k', throughput: '1000M' })).toEqual({
      tier: 'gold',
      iops: '3000',
      throughput: '954',
    })
    expect(composeParameters({ iops: '5k', throughput: '50MiB/s' }, NO_REQUESTS)).toEqual({
      iops: '5k',
      throughput: '50MiB/s',
    })
  })

  it.each(['100', '100Mi', '100MiB', '100MiB/s', '100 MiB/s', '104857600'])(
    'PIO-1 accepts a class parameter %j and a claim that requests 100Mi as equal',
    (text) => {
      expect(composeParameters({ throughput: text }, { ...NO_REQUESTS, throughput: '100Mi' })).toEqual({
        throughput: text,
      })
    },
  )

  it.each([
    [
      { iops: '5000' },
      { ...NO_REQUESTS, iops: '3k' },
      /requests 3k iops, but its VolumeAttributesClass specifies iops "5000"/,
    ],
    [{ iops: 'many' }, { ...NO_REQUESTS, iops: '3k' }, /specifies iops "many"/],
    [{ throughput: '50MiB/s' }, { ...NO_REQUESTS, throughput: '100Mi' }, /requests 100Mi throughput.*"50MiB\/s"/],
  ])('PIO-1 rejects %j with %j and names both values', (classParameters, requestedIo, message) => {
    expect(() => composeParameters(classParameters as never, requestedIo)).toThrowError(
      expect.objectContaining({ failure: 'infeasible', message: expect.stringMatching(message) }),
    )
  })

  it.each(['0', '-5', '100m', 'x'])('PIO-5 rejects a request of %j iops', (iops) => {
    expect(() => composeParameters({}, { ...NO_REQUESTS, iops })).toThrowError(
      expect.objectContaining({ failure: 'infeasible' }),
    )
  })

  it('VAC-3 rejects parameters that exceed the size limit of CSI', () => {
    expect(() => composeParameters({ note: 'x'.repeat(4_096) }, NO_REQUESTS)).toThrowError(/accepts at most 4096/)
  })

  it('PIO-1 rounds throughput up to the next MiB/s', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1_048_576n, max: 2n ** 60n }), (bytes) => {
        const mebibytes = BigInt(composeParameters({}, { ...NO_REQUESTS, throughput: String(bytes) }).throughput!)
        expect(mebibytes * 1_048_576n >= bytes && (mebibytes - 1n) * 1_048_576n < bytes).toBe(true)
      }),
    )
  })
})

describe('omitOverridden', () => {
  it('PIO-2 omits creation attributes that a request or an attributes class overrides', () => {
    const parameters = { tier: 'x', 'provisioned-iops-on-create': '100', 'provisioned-throughput-on-create': '1Mi' }
    expect(omitOverridden(parameters, { iops: '3000' })).toEqual({
      tier: 'x',
      'provisioned-throughput-on-create': '1Mi',
    })
    expect(omitOverridden(parameters, {})).toEqual(parameters)
  })
})
