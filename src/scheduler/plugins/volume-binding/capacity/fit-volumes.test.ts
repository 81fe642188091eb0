import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../../base/manual-clock.ts'
import { CapacityIndex } from './capacity-index.ts'
import { type VolumeRequest, VolumeFitter } from './fit-volumes.ts'
import { Reservations } from './reservations.ts'

const HERE = { zone: 'a' }
const DRIVER = 'd.example.com'

function aPlace({ reserving = true } = {}) {
  const index = new CapacityIndex()
  const reservations = reserving
    ? new Reservations({ index, clock: manualClock(), driverOf: () => DRIVER, onFreed: () => {} })
    : undefined
  const report = (name: string, parts: object, className = 'fast') => {
    const metadata = { namespace: 'ns', name }
    return index.put({ metadata, storageClassName: className, nodeTopology: { matchLabels: HERE }, ...parts }).now
  }
  const fitting = (...demands: VolumeRequest[]) =>
    new VolumeFitter({ index, reservations }, demands).fit(HERE)?.map(({ key }) => key.slice('ns/'.length))
  return { report, fitting, reservations, index }
}
const want = (claim: string, bytes: number, className = 'fast', driver = DRIVER): VolumeRequest => ({
  claimKey: `ns/${claim}`,
  className,
  driver,
  bytes: BigInt(bytes),
})

describe('whether volumes fit', () => {
  it('PLUS-3 all claims of a pod are judged together', () => {
    const { report, fitting } = aPlace()
    report('r', { capacity: '100' })
    expect(fitting(want('a', 50), want('b', 50))).toEqual(['r', 'r'])
    expect(fitting(want('a', 50), want('b', 51))).toBe(undefined)
  })

  it('CAP-12 PLUS-3 what is missing is told: by itself, or beside the other volumes of the pod', () => {
    const { report, index, reservations } = aPlace()
    report('r', { capacity: '1000Mi' })
    const shortage = (...sizes: number[]) => {
      const demands = sizes.map((size, nth) => want(String(nth), size * 1024 ** 2))
      const fitter = new VolumeFitter({ index, reservations }, demands)
      fitter.fit(HERE)
      return fitter.shortage()
    }
    const asked = (size: string) => `A volume of ${size} of class "fast" is asked for, and`
    expect(shortage(1001)).toBe(`${asked('1001Mi')} at most 1000Mi is free on any of the nodes.`)
    expect(shortage(600, 500)).toBe(
      `${asked('500Mi')} at most 400Mi is left on any of the nodes beside another volume of the pod.`,
    )
    expect(shortage(500, 500, 500)).toBe(
      `${asked('500Mi')} nothing is left on any of the nodes beside 2 other volumes of the pod.`,
    )
    expect(shortage(1000)).toBe(undefined)
  })

  it('CAP-12 PLUS-3 what is promised to others is told, where the report does not show it', () => {
    const { report, index, reservations } = aPlace()
    const now = report('r', { capacity: '1000Mi' })
    const bytes = 700n * 1024n ** 2n
    reservations?.assume({ claimKey: 'ns/other', claimUid: 'other', driver: DRIVER, bytes, report: now })
    const fitter = new VolumeFitter({ index, reservations }, [want('a', 400 * 1024 ** 2)])
    fitter.fit(HERE)
    expect(fitter.shortage()).toBe(
      'A volume of 400Mi of class "fast" is asked for, and at most 300Mi is free on any of the nodes ' +
        '(700Mi there is promised to other volumes).',
    )
  })

  it('PLUS-3 also across classes of one driver, but not across drivers', () => {
    const { report, fitting } = aPlace()
    report('r', { capacity: '100' })
    report('s', { capacity: '100' }, 'slow')
    expect(fitting(want('a', 60), want('b', 60, 'slow'))).toBe(undefined)
    expect(fitting(want('a', 60), want('b', 60, 'slow', 'other.example.com'))).toEqual(['r', 's'])
  })

  it('PLUS-3 a volume costs a class that reports less only its share: a pod that just fits is taken', () => {
    const { report, fitting } = aPlace()
    report('plain', { capacity: '300' }, 'plain')
    report('mirrored', { capacity: '150' }, 'mirrored')
    expect(fitting(want('a', 100, 'plain'), want('b', 100, 'mirrored'))).toEqual(['plain', 'mirrored'])
    expect(fitting(want('a', 102, 'plain'), want('b', 100, 'mirrored'))).toBe(undefined)
    expect(fitting(want('b', 100, 'mirrored'), want('a', 101, 'plain'))).toBe(undefined)
  })

  it('PLUS-3 without reservation each claim is judged alone, as the document has it', () => {
    const { report, fitting } = aPlace({ reserving: false })
    report('r', { capacity: '100' })
    expect(fitting(want('a', 100), want('b', 100))).toEqual(['r', 'r'])
    expect(fitting(want('a', 101))).toBe(undefined)
  })

  it('PLUS-3 promises lower the capacity and never the maximum', () => {
    const { report, fitting, reservations } = aPlace()
    const both = report('r', { capacity: '100', maximumVolumeSize: '60' })
    reservations?.assume({ claimKey: 'ns/x', claimUid: 'x', driver: DRIVER, bytes: 40n, report: both })
    expect(fitting(want('a', 60))).toEqual(['r'])
    expect(fitting(want('a', 61))).toBe(undefined)
    reservations?.assume({ claimKey: 'ns/y', claimUid: 'y', driver: DRIVER, bytes: 1n, report: both })
    expect(fitting(want('a', 60))).toBe(undefined)
  })

  it('PLUS-3 a driver that allows more than is free is taken at its word', () => {
    const { report, fitting } = aPlace()
    report('r', { capacity: '10', maximumVolumeSize: '100' })
    expect(fitting(want('a', 90), want('b', 90))).toEqual(['r', 'r'])
  })

  it('CAP-11 where reports overlap, the roomiest counts, and then the first by name', () => {
    const { report, fitting } = aPlace()
    report('b', { capacity: '50' })
    report('a', { capacity: '50' })
    report('z', { capacity: '20' })
    expect(fitting(want('x', 30))).toEqual(['a'])
  })

  it('CAP-11 amounts beyond any number are compared exactly', () => {
    const { report, fitting } = aPlace()
    report('r', { capacity: '900E' })
    const demand = (bytes: bigint) => ({ ...want('x', 0), bytes })
    expect(fitting(demand(900n * 10n ** 18n))).toEqual(['r'])
    expect(fitting(demand(900n * 10n ** 18n + 1n))).toBe(undefined)
  })
})
