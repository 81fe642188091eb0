import { assert, constantFrom, dictionary, property, string } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CsiError } from '../csi/errors.ts'
import { changeRates, parseMutableParameters, parseParameters } from './parameters.ts'

const MIB = 1_048_576

describe('class parameters', () => {
  it('default to reserved volumes without limits', () => {
    expect(parseParameters({}, {})).toEqual({ provisioning: 'reserved', overcommit: 1, rates: {} })
  })

  it('specify file system, provisioning and limits', () => {
    const parameters = { fsType: 'ext4', provisioning: 'thin', overcommit: '2.5', iops: '100', throughput: '10' }
    expect(parseParameters(parameters, {})).toEqual({
      fsType: 'ext4',
      provisioning: 'thin',
      overcommit: 2.5,
      rates: { iops: 100, throughputBytes: 10 * MIB },
    })
  })

  it('PIO-2 specify limits with provisioned-…-on-create', () => {
    const onCreate = { 'provisioned-iops-on-create': '300', 'provisioned-throughput-on-create': '5' }
    expect(parseParameters(onCreate, {}).rates).toEqual({ iops: 300, throughputBytes: 5 * MIB })
  })

  it.each([
    ['100', 100 * MIB],
    ['50Mi', 50 * MIB],
    ['50MiB/s', 50 * MIB],
    ['1000M', 1_000_000_000],
    ['2GB/s', 2_000_000_000],
    ['64K', 64_000],
    ['64KiB', 65_536],
    ['1048576B/s', MIB],
    ['0', 0],
  ])('PIO-10 parse throughput %s as %d bytes/s', (text, bytes) => {
    expect(parseMutableParameters({ throughput: text })).toEqual({ throughputBytes: bytes })
  })

  it.each(['', '-1', '1.5', '10 Mi', 'fast', '1Ti', '999999999999999Gi', '1B', '0x10', '5/m'])(
    'PIO-10 reject throughput %j',
    (text) => expect(errorOf(() => parseMutableParameters({ throughput: text }))).toMatch(/^throughput /),
  )

  it.each(['', '-1', '1.5', '4294967296', '1e3', 'many'])('PIO-10 reject iops %j', (text) => {
    expect(errorOf(() => parseMutableParameters({ iops: text }))).toMatch(/^iops /)
  })

  it('reject an immutable key with the list of mutable ones', () => {
    expect(errorOf(() => parseMutableParameters({ fsType: 'xfs' }))).toBe(
      'Unknown mutable parameter "fsType". Supported: iops, throughput.',
    )
  })

  it('ignore the claim metadata of provisioners and resizers', () => {
    const claimMetadata = { 'csi.storage.k8s.io/pvc/name': 'orders', 'csi.storage.k8s.io/pv/name': 'pv-1' }
    expect(parseParameters(claimMetadata, claimMetadata)).toEqual(parseParameters({}, {}))
  })

  it('VAC-3 accept the same value in both maps and reject different ones', () => {
    expect(parseParameters({ throughput: '100' }, { throughput: '100Mi' }).rates).toEqual({
      throughputBytes: 100 * MIB,
    })
    expect(errorOf(() => parseParameters({ iops: '100' }, { iops: '200' }))).toContain('"100"')
    const contradictingParameters = { iops: '1', 'provisioned-iops-on-create': '2' }
    expect(errorOf(() => parseParameters(contradictingParameters, {}))).toContain('contradict')
  })

  it('PIO-10 leave omitted limits unchanged, and remove limits that are zero', () => {
    expect(changeRates({ iops: 100, throughputBytes: MIB }, { iops: 0 })).toEqual({ throughputBytes: MIB })
    expect(changeRates({ iops: 100 }, { throughputBytes: MIB })).toEqual({ iops: 100, throughputBytes: MIB })
  })

  it.each([
    [{ fsType: 'btrfs' }, 'fsType "btrfs": expected xfs or ext4.'],
    [{ provisioning: 'fat' }, 'provisioning "fat": expected reserved or thin.'],
    [{ overcommit: '2' }, 'overcommit requires thin provisioning: set provisioning to thin, or remove overcommit.'],
    [
      { provisioning: 'thin', overcommit: '0.5' },
      'overcommit "0.5": expected a ratio from 1 to 100, such as 2 or 1.5.',
    ],
  ])('reject %j', (parameters, message) => {
    expect(errorOf(() => parseParameters(parameters as Record<string, string>, {}))).toBe(message)
  })

  it('are parsed or rejected with INVALID_ARGUMENT for any input', () => {
    const key = constantFrom('fsType', 'provisioning', 'overcommit', 'iops', 'throughput', '__proto__', 'x')
    const map = dictionary(key, string())
    assert(
      property(map, map, (parameters, mutableParameters) => {
        try {
          const { overcommit } = parseParameters(parameters, mutableParameters)
          expect(overcommit).toBeGreaterThanOrEqual(1)
        } catch (error) {
          expect((error as CsiError).codeName).toBe('INVALID_ARGUMENT')
        }
      }),
    )
  })
})

function errorOf(parse: () => unknown): string {
  try {
    parse()
  } catch (error) {
    if (error instanceof CsiError && error.codeName === 'INVALID_ARGUMENT') return error.message
    throw error
  }
  throw new Error('the parameters were accepted')
}
