import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../../base/manual-clock.ts'
import { CapacityIndex } from './capacity-index.ts'
import { VolumeFitter, type VolumeRequest } from './fit-volumes.ts'
import { Reservations } from './reservations.ts'

const HERE = { zone: 'a' }
const DRIVER = 'd.example.com'

function createFitting({ reserving = true } = {}) {
  const index = new CapacityIndex()
  const reservations = reserving
    ? new Reservations({ index, clock: manualClock(), driverOf: () => DRIVER, onFreed: () => {} })
    : undefined
  const report = (name: string, parts: object, className = 'fast') => {
    const metadata = { namespace: 'ns', name }
    return index.put({ metadata, storageClassName: className, nodeTopology: { matchLabels: HERE }, ...parts }).now
  }
  const fitting = (...requests: VolumeRequest[]) =>
    new VolumeFitter({ index, reservations }, requests).fit(HERE)?.map(({ key }) => key.slice('ns/'.length))
  return { report, fitting, reservations, index }
}
const request = (claim: string, bytes: number, className = 'fast', driver = DRIVER): VolumeRequest => ({
  claimKey: `ns/${claim}`,
  className,
  driver,
  bytes: BigInt(bytes),
})

describe('the volume fitter', () => {
  it('PLUS-3 fits all claims of a pod together', () => {
    const { report, fitting } = createFitting()
    report('r', { capacity: '100' })
    expect(fitting(request('a', 50), request('b', 50))).toEqual(['r', 'r'])
    expect(fitting(request('a', 50), request('b', 51))).toBe(undefined)
  })

  it('CAP-12 PLUS-3 explains a shortage, alone or beside the other volumes of the pod', () => {
    const { report, index, reservations } = createFitting()
    report('r', { capacity: '1000Mi' })
    const shortage = (...sizes: number[]) => {
      const requests = sizes.map((size, nth) => request(String(nth), size * 1024 ** 2))
      const fitter = new VolumeFitter({ index, reservations }, requests)
      fitter.fit(HERE)
      return fitter.shortage()
    }
    const requested = (size: string) => `A volume of ${size} of class "fast" is requested, but`
    expect(shortage(1001)).toBe(`${requested('1001Mi')} at most 1000Mi is free on any node.`)
    expect(shortage(600, 500)).toBe(
      `${requested('500Mi')} at most 400Mi is left on any node beside another volume of the pod.`,
    )
    expect(shortage(500, 500, 500)).toBe(
      `${requested('500Mi')} no capacity is left on any node beside 2 other volumes of the pod.`,
    )
    expect(shortage(1000)).toBe(undefined)
  })

  it('CAP-12 PLUS-3 mentions bytes reserved for other volumes, which the report does not show', () => {
    const { report, index, reservations } = createFitting()
    const now = report('r', { capacity: '1000Mi' })
    const bytes = 700n * 1024n ** 2n
    reservations?.assume({ claimKey: 'ns/other', claimUid: 'other', driver: DRIVER, bytes, report: now })
    const fitter = new VolumeFitter({ index, reservations }, [request('a', 400 * 1024 ** 2)])
    fitter.fit(HERE)
    expect(fitter.shortage()).toBe(
      'A volume of 400Mi of class "fast" is requested, but at most 300Mi is free on any node ' +
        '(700Mi is reserved for other volumes there).',
    )
  })

  it('PLUS-3 fits volumes together across classes of one driver, but not across drivers', () => {
    const { report, fitting } = createFitting()
    report('r', { capacity: '100' })
    report('s', { capacity: '100' }, 'slow')
    expect(fitting(request('a', 60), request('b', 60, 'slow'))).toBe(undefined)
    expect(fitting(request('a', 60), request('b', 60, 'slow', 'other.example.com'))).toEqual(['r', 's'])
  })

  it('PLUS-3 subtracts only its share from a class that reports less, so that a pod that just fits is accepted', () => {
    const { report, fitting } = createFitting()
    report('plain', { capacity: '300' }, 'plain')
    report('mirrored', { capacity: '150' }, 'mirrored')
    expect(fitting(request('a', 100, 'plain'), request('b', 100, 'mirrored'))).toEqual(['plain', 'mirrored'])
    expect(fitting(request('a', 102, 'plain'), request('b', 100, 'mirrored'))).toBe(undefined)
    expect(fitting(request('b', 100, 'mirrored'), request('a', 101, 'plain'))).toBe(undefined)
  })

  it('PLUS-3 fits each claim alone without reservations, as in KEP-1472', () => {
    const { report, fitting } = createFitting({ reserving: false })
    report('r', { capacity: '100' })
    expect(fitting(request('a', 100), request('b', 100))).toEqual(['r', 'r'])
    expect(fitting(request('a', 101))).toBe(undefined)
  })

  it('PLUS-3 subtracts reservations from the capacity and never from the maximum volume size', () => {
    const { report, fitting, reservations } = createFitting()
    const both = report('r', { capacity: '100', maximumVolumeSize: '60' })
    reservations?.assume({ claimKey: 'ns/x', claimUid: 'x', driver: DRIVER, bytes: 40n, report: both })
    expect(fitting(request('a', 60))).toEqual(['r'])
    expect(fitting(request('a', 61))).toBe(undefined)
    reservations?.assume({ claimKey: 'ns/y', claimUid: 'y', driver: DRIVER, bytes: 1n, report: both })
    expect(fitting(request('a', 60))).toBe(undefined)
  })

  it('PLUS-3 does not subtract anything for a driver that overcommits', () => {
    const { report, fitting } = createFitting()
    report('r', { capacity: '10', maximumVolumeSize: '100' })
    expect(fitting(request('a', 90), request('b', 90))).toEqual(['r', 'r'])
  })

  it('CAP-11 uses the report with the most room if reports overlap, then the first by name', () => {
    const { report, fitting } = createFitting()
    report('b', { capacity: '50' })
    report('a', { capacity: '50' })
    report('z', { capacity: '20' })
    expect(fitting(request('x', 30))).toEqual(['a'])
  })

  it('CAP-11 compares amounts beyond floating-point precision exactly', () => {
    const { report, fitting } = createFitting()
    report('r', { capacity: '900E' })
    const exactly = (bytes: bigint) => ({ ...request('x', 0), bytes })
    expect(fitting(exactly(900n * 10n ** 18n))).toEqual(['r'])
    expect(fitting(exactly(900n * 10n ** 18n + 1n))).toBe(undefined)
  })
})
