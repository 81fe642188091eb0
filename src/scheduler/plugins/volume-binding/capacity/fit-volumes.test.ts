import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../../base/manual-clock.ts'
import { CapacityIndex } from './capacity-index.ts'
import { VolumeFitter, type VolumeRequest } from './fit-volumes.ts'
import { Reservations } from './reservations.ts'

const NODE_LABELS = { zone: 'a' }
const DRIVER = 'd.example.com'

function createFixture({ hasReservations = true } = {}) {
  const index = new CapacityIndex()
  const reservations = hasReservations
    ? new Reservations({ index, clock: manualClock(), driverOf: () => DRIVER, onReleased: () => {} })
    : undefined
  const report = (name: string, fields: object, className = 'fast') => {
    const metadata = { namespace: 'ns', name }
    return index.put({ metadata, storageClassName: className, nodeTopology: { matchLabels: NODE_LABELS }, ...fields })
      .current
  }
  const fitReports = (...requests: VolumeRequest[]) =>
    new VolumeFitter({ index, reservations }, requests).fit(NODE_LABELS)?.map(({ key }) => key.slice('ns/'.length))
  return { report, fitReports, reservations, index }
}
const request = (claim: string, bytes: number, className = 'fast', driver = DRIVER): VolumeRequest => ({
  claimKey: `ns/${claim}`,
  className,
  driver,
  bytes: BigInt(bytes),
})

describe('the volume fitter', () => {
  it('PLUS-3 fits all claims of a pod together', () => {
    const { report, fitReports } = createFixture()
    report('r', { capacity: '100' })
    expect(fitReports(request('a', 50), request('b', 50))).toEqual(['r', 'r'])
    expect(fitReports(request('a', 50), request('b', 51))).toBe(undefined)
  })

  it('CAP-12 PLUS-3 explains which volume lacks capacity and how much is free', () => {
    const { report, index, reservations } = createFixture()
    report('r', { capacity: '1000Mi' })
    const shortage = (...sizes: number[]) => {
      const requests = sizes.map((size, position) => request(String(position), size * 1024 ** 2))
      const fitter = new VolumeFitter({ index, reservations }, requests)
      fitter.fit(NODE_LABELS)
      return fitter.describeShortage()
    }
    const requestText = (size: string) => `A volume of ${size} of class "fast" is requested, but`
    expect(shortage(1001)).toBe(`${requestText('1001Mi')} at most 1000Mi is free on any node.`)
    expect(shortage(600, 500)).toBe(
      `${requestText('500Mi')} at most 400Mi is left on any node after another volume of the pod.`,
    )
    expect(shortage(500, 500, 500)).toBe(
      `${requestText('500Mi')} no capacity is left on any node after 2 other volumes of the pod.`,
    )
    expect(shortage(1000)).toBe(undefined)
  })

  it('CAP-12 PLUS-3 mentions the bytes that are reserved for other volumes', () => {
    const { report, index, reservations } = createFixture()
    const capacityReport = report('r', { capacity: '1000Mi' })
    const bytes = 700n * 1024n ** 2n
    reservations?.assume({ claimKey: 'ns/other', claimUid: 'other', driver: DRIVER, bytes, report: capacityReport })
    const fitter = new VolumeFitter({ index, reservations }, [request('a', 400 * 1024 ** 2)])
    fitter.fit(NODE_LABELS)
    expect(fitter.describeShortage()).toBe(
      'A volume of 400Mi of class "fast" is requested, but at most 300Mi is free on any node ' +
        '(700Mi is reserved for other volumes there).',
    )
  })

  it('PLUS-3 adds up volumes of different classes of one driver, but not of different drivers', () => {
    const { report, fitReports } = createFixture()
    report('r', { capacity: '100' })
    report('s', { capacity: '100' }, 'slow')
    expect(fitReports(request('a', 60), request('b', 60, 'slow'))).toBe(undefined)
    expect(fitReports(request('a', 60), request('b', 60, 'slow', 'other.example.com'))).toEqual(['r', 's'])
  })

  it('PLUS-3 subtracts a volume from the report of another class in proportion to the reported capacities', () => {
    const { report, fitReports } = createFixture()
    report('plain', { capacity: '300' }, 'plain')
    report('mirrored', { capacity: '150' }, 'mirrored')
    expect(fitReports(request('a', 100, 'plain'), request('b', 100, 'mirrored'))).toEqual(['plain', 'mirrored'])
    expect(fitReports(request('a', 102, 'plain'), request('b', 100, 'mirrored'))).toBe(undefined)
    expect(fitReports(request('b', 100, 'mirrored'), request('a', 101, 'plain'))).toBe(undefined)
  })

  it('PLUS-3 fits each claim separately if reservations are disabled, as in KEP-1472', () => {
    const { report, fitReports } = createFixture({ hasReservations: false })
    report('r', { capacity: '100' })
    expect(fitReports(request('a', 100), request('b', 100))).toEqual(['r', 'r'])
    expect(fitReports(request('a', 101))).toBe(undefined)
  })

  it('PLUS-3 subtracts reservations from the capacity but not from the maximum volume size', () => {
    const { report, fitReports, reservations } = createFixture()
    const capacityReport = report('r', { capacity: '100', maximumVolumeSize: '60' })
    reservations?.assume({ claimKey: 'ns/x', claimUid: 'x', driver: DRIVER, bytes: 40n, report: capacityReport })
    expect(fitReports(request('a', 60))).toEqual(['r'])
    expect(fitReports(request('a', 61))).toBe(undefined)
    reservations?.assume({ claimKey: 'ns/y', claimUid: 'y', driver: DRIVER, bytes: 1n, report: capacityReport })
    expect(fitReports(request('a', 60))).toBe(undefined)
  })

  it('PLUS-3 does not add up the volumes of a pod for a driver that overcommits', () => {
    const { report, fitReports } = createFixture()
    report('r', { capacity: '10', maximumVolumeSize: '100' })
    expect(fitReports(request('a', 90), request('b', 90))).toEqual(['r', 'r'])
  })

  it('CAP-11 selects the overlapping report with the most free capacity, then the first by name', () => {
    const { report, fitReports } = createFixture()
    report('b', { capacity: '50' })
    report('a', { capacity: '50' })
    report('z', { capacity: '20' })
    expect(fitReports(request('x', 30))).toEqual(['a'])
  })

  it('CAP-11 compares sizes above 2^53 bytes exactly', () => {
    const { report, fitReports } = createFixture()
    report('r', { capacity: '900E' })
    const aRequestOf = (bytes: bigint) => ({ ...request('x', 0), bytes })
    expect(fitReports(aRequestOf(900n * 10n ** 18n))).toEqual(['r'])
    expect(fitReports(aRequestOf(900n * 10n ** 18n + 1n))).toBe(undefined)
  })
})
