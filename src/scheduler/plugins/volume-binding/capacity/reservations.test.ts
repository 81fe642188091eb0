import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CSIStorageCapacity } from '../../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { manualClock } from '../../../../base/manual-clock.ts'
import { CapacityIndex } from './capacity-index.ts'
import { Reservations } from './reservations.ts'

const DRIVER = 'd.example.com'

function createReservations() {
  const clock = manualClock()
  const index = new CapacityIndex()
  const freed: string[] = []
  const reservations = new Reservations({
    index,
    clock,
    driverOf: (className) => (className === 'foreign' ? 'other.example.com' : DRIVER),
    onFreed: (driver) => void freed.push(driver),
  })
  function report(name: string, bytes: number, className = name, zone = 'a') {
    const object: CSIStorageCapacity = {
      metadata: { namespace: 'ns', name },
      storageClassName: className,
      nodeTopology: { matchLabels: { zone } },
      capacity: String(bytes),
    }
    const { now, before } = index.put(object)
    reservations.reportChanged(now, before)
  }
  const requested = (claim: string, bytes: number, by = 'fast') => ({
    claimKey: `ns/${claim}`,
    claimUid: claim,
    driver: DRIVER,
    bytes: BigInt(bytes),
    report: index.get(`ns/${by}`)!,
  })
  const reserved = (name: string) => Number(reservations.reservedForOthers(index.get(`ns/${name}`)!, []))
  return { clock, index, reservations, report, requested, reserved, freed }
}
/** All steps from the decision to the created volume. */
function create(ledger: ReturnType<typeof createReservations>, claim: string, bytes: number, by?: string) {
  ledger.reservations.assume(ledger.requested(claim, bytes, by))
  ledger.reservations.nodeSelected(`ns/${claim}`, claim)
  ledger.reservations.volumeCreated(`ns/${claim}`, claim)
}

describe('capacity reservations', () => {
  it('PLUS-3 last from the decision until a report has decreased by the volume', () => {
    const ledger = createReservations()
    ledger.report('fast', 100)
    ledger.reservations.assume(ledger.requested('c', 10))
    expect(ledger.reserved('fast')).toBe(10)
    ledger.reservations.nodeSelected('ns/c', 'c')
    ledger.reservations.volumeCreated('ns/c', 'c')
    expect(ledger.reserved('fast')).toBe(10)
    ledger.report('fast', 90)
    expect(ledger.reserved('fast')).toBe(0)
    expect(ledger.reservations.size).toBe(0)
  })

  it('PLUS-3 keep a later volume reserved when a late report counts an earlier one', () => {
    const ledger = createReservations()
    ledger.report('fast', 100)
    create(ledger, 'early', 10)
    create(ledger, 'late', 10)
    ledger.report('fast', 90)
    expect(ledger.reserved('fast')).toBe(10)
    ledger.report('fast', 95) // a volume was deleted
    expect(ledger.reserved('fast')).toBe(10)
    ledger.report('fast', 85)
    expect(ledger.reserved('fast')).toBe(0)
  })

  it('PLUS-3 end when a report counts the volume before its claim is bound', () => {
    const ledger = createReservations()
    ledger.report('fast', 100)
    ledger.reservations.assume(ledger.requested('c', 10))
    ledger.reservations.nodeSelected('ns/c', 'c')
    ledger.report('fast', 90)
    expect(ledger.reserved('fast')).toBe(0)
    ledger.reservations.volumeCreated('ns/c', 'c')
    expect(ledger.reservations.size).toBe(0)
  })

  it('PLUS-3 reserve again for a requested volume when the decrease turns out to be of another one', async () => {
    const ledger = createReservations()
    ledger.report('fast', 100)
    for (const claim of ['slow', 'quick']) {
      ledger.reservations.assume(ledger.requested(claim, 10))
      ledger.reservations.nodeSelected(`ns/${claim}`, claim)
    }
    ledger.report('fast', 90) // caused by "quick", whose claim is not bound yet
    expect(ledger.reserved('fast')).toBe(10)
    ledger.reservations.volumeCreated('ns/quick', 'quick')
    expect(ledger.reservations.stateOf('ns/quick')).toBe(undefined)
    await ledger.clock.advance(600_000) // longer than a created volume stays reserved
    expect(ledger.reserved('fast')).toBe(10)
    ledger.reservations.volumeCreated('ns/slow', 'slow')
    ledger.report('fast', 80)
    expect(ledger.reserved('fast')).toBe(0)
    expect(ledger.reservations.size).toBe(0)
  })

  it('PLUS-3 ignore a decrease before the node is selected', () => {
    const ledger = createReservations()
    ledger.report('fast', 100)
    ledger.reservations.assume(ledger.requested('c', 10))
    ledger.report('fast', 80)
    expect(ledger.reserved('fast')).toBe(10)
  })

  it('PLUS-3 are subtracted from all classes of the driver in the same place, in proportion to their reports', () => {
    const ledger = createReservations()
    ledger.report('fast', 50) // mirrored
    ledger.report('striped', 100)
    ledger.report('foreign', 100)
    ledger.report('elsewhere', 100, 'elsewhere', 'b')
    ledger.reservations.assume(ledger.requested('c', 10))
    expect(['fast', 'striped', 'foreign', 'elsewhere'].map(ledger.reserved)).toEqual([10, 20, 0, 0])
    ledger.reservations.release('ns/c')
    expect(ledger.reserved('striped')).toBe(0)
    expect(ledger.freed).toEqual([DRIVER])
  })

  it('PLUS-3 are subtracted from the first report of another class, which may be late', async () => {
    const ledger = createReservations()
    ledger.report('fast', 100)
    create(ledger, 'c', 10)
    ledger.report('slow', 100) // as it was before the volume was created
    expect(ledger.reserved('slow')).toBe(10)
    ledger.report('fast', 90)
    ledger.report('slow', 90)
    expect(ledger.reserved('slow')).toBe(0)

    create(ledger, 'd', 10)
    ledger.report('prompt', 80) // already counts the volume, which cannot be known
    ledger.report('fast', 80)
    ledger.report('slow', 80)
    expect(ledger.reserved('prompt')).toBe(10)
    await ledger.clock.advance(10_000)
    expect(ledger.reserved('prompt')).toBe(0)
    expect(ledger.reservations.size).toBe(0)
  })

  it('PLUS-3 end for a class of another pool soon after the report of its own class has counted it', async () => {
    const ledger = createReservations()
    ledger.report('fast', 100)
    ledger.report('slow', 100)
    create(ledger, 'c', 10)
    ledger.report('fast', 90)
    expect(ledger.reserved('slow')).toBe(10)
    await ledger.clock.advance(11_000)
    expect(ledger.reserved('slow')).toBe(0)
    expect(ledger.freed).toEqual([DRIVER])
  })

  it('PLUS-3 time out for a volume that no report ever counts', async () => {
    const ledger = createReservations()
    ledger.report('fast', 100)
    create(ledger, 'thin', 10)
    await ledger.clock.advance(119_000)
    expect(ledger.reserved('fast')).toBe(10)
    await ledger.clock.advance(2_000)
    expect(ledger.reserved('fast')).toBe(0)
    expect(ledger.freed).toEqual([DRIVER])
  })

  it('PLUS-3 end when the volume is deleted before a report has counted it', () => {
    const ledger = createReservations()
    ledger.report('fast', 100)
    create(ledger, 'short', 10)
    ledger.reservations.claimDeleted('ns/short')
    ledger.reservations.volumeDeleted('ns/short', 'another uid')
    expect(ledger.reserved('fast')).toBe(10)
    ledger.reservations.volumeDeleted('ns/short', 'short')
    expect(ledger.reserved('fast')).toBe(0)
    expect(ledger.freed).toEqual([DRIVER])
  })

  it('PLUS-3 last as long as a driver call may take after the claim of a requested volume is deleted', async () => {
    const ledger = createReservations()
    ledger.report('fast', 100)
    ledger.reservations.assume(ledger.requested('c', 10))
    ledger.reservations.nodeSelected('ns/c', 'c')
    ledger.reservations.claimDeleted('ns/c')
    await ledger.clock.advance(14_000)
    expect(ledger.reserved('fast')).toBe(10)
    await ledger.clock.advance(2_000)
    expect(ledger.reserved('fast')).toBe(0)
    expect(ledger.freed).toEqual([DRIVER])
  })

  it('PLUS-3 end when provisioning fails, and the place is refused for that size until its next report or for a minute', async () => {
    const ledger = createReservations()
    ledger.report('fast', 100)
    ledger.reservations.assume(ledger.requested('c', 10))
    ledger.reservations.nodeSelected('ns/c', 'c')
    ledger.reservations.provisioningFailed('ns/c', 'c')
    expect(ledger.reserved('fast')).toBe(0)
    expect(ledger.index.get('ns/fast')?.ledger.refused).toBe(10n)
    await ledger.clock.advance(61_000)
    expect(ledger.index.get('ns/fast')?.ledger.refused).toBe(undefined)
    expect(ledger.freed).toHaveLength(2)
  })

  it('PLUS-3 end when the volume is created elsewhere, and the place counts as refused', async () => {
    const ledger = createReservations()
    ledger.report('fast', 100)
    const requested = ledger.requested('c', 10)
    create(ledger, 'c', 10)
    ledger.reservations.createdElsewhere(requested)
    expect(ledger.reserved('fast')).toBe(0)
    expect(ledger.index.get('ns/fast')?.ledger.refused).toBe(10n)
    await ledger.clock.advance(61_000)
    expect(ledger.index.get('ns/fast')?.ledger.refused).toBe(undefined)
  })

  it('PLUS-3 do not count against the claim itself, and ignore a new claim of the same name', () => {
    const ledger = createReservations()
    ledger.report('fast', 100)
    ledger.reservations.assume(ledger.requested('c', 10))
    expect(ledger.reservations.reservedForOthers(ledger.index.get('ns/fast')!, ['ns/c'])).toBe(0n)
    ledger.reservations.nodeSelected('ns/c', 'c')
    ledger.reservations.volumeCreated('ns/c', 'another uid')
    expect(ledger.reservations.stateOf('ns/c')).toBe('requested')
  })

  it('PLUS-3 keep the report minus the reserved bytes within the actual free space', () => {
    // A pool shared by two classes, one of which reports from the start; a driver whose reports are late, by a different
    // amount for each class; and claims in any order of states. The first report of the later class is no older than the
    // last one of the other.
    type ClassName = 'fast' | 'slow'
    interface Step {
      readonly do: 'assume' | 'select' | 'create' | 'fail' | 'report'
      readonly at: number
      readonly size: number
      readonly by: ClassName
    }
    const step: fc.Arbitrary<Step> = fc.record({
      do: fc.constantFrom('assume', 'select', 'create', 'fail', 'report'),
      at: fc.nat(3),
      size: fc.integer({ min: 1, max: 20 }),
      by: fc.constantFrom('fast', 'slow'),
    })
    const life = { steps: fc.array(step, { maxLength: 100, size: 'max' }), slowFrom: fc.nat(50) }
    fc.assert(
      fc.property(fc.record(life), ({ steps, slowFrom }) => {
        const ledger = createReservations()
        let free = 100
        const history = [100]
        /** The position in the history that the driver reports, by class. */
        const seen: { fast: number; slow: number | undefined } = { fast: 0, slow: undefined }
        const offered = (name: ClassName): number =>
          seen[name] === undefined ? 0 : history[seen[name]]! - ledger.reserved(name)
        ledger.report('fast', 100)
        const claims = new Map<string, { size: number; isSelected: boolean }>()
        const pick = (at: number, isSelected: boolean) => {
          const some = [...claims].filter(([, claim]) => claim.isSelected === isSelected)
          return some[at % some.length]
        }
        for (const [nth, { do: what, at, size, by }] of steps.entries()) {
          if (what === 'assume' && offered(by) >= size) {
            ledger.reservations.assume(ledger.requested(`c${nth}`, size, by))
            claims.set(`c${nth}`, { size, isSelected: false })
          } else if (what === 'report' && (by === 'fast' || nth >= slowFrom)) {
            seen[by] = Math.max(seen[by] ?? seen.fast, history.length - 1 - (size % 3)) // late by up to two volumes
            ledger.report(by, history[seen[by]]!)
          }
          const [name, claim] = pick(at, what !== 'select') ?? []
          if (name && claim && what === 'select') {
            ledger.reservations.nodeSelected(`ns/${name}`, name)
            claim.isSelected = true
          } else if (name && claim && what === 'create') {
            expect(free).toBeGreaterThanOrEqual(claim.size) // the driver never refuses
            free -= claim.size
            history.push(free)
            ledger.reservations.volumeCreated(`ns/${name}`, name)
            claims.delete(name)
          } else if (name && what === 'fail') {
            ledger.reservations.provisioningFailed(`ns/${name}`, name)
            claims.delete(name)
          }
          const assumed = [...claims.values()].reduce((sum, one) => sum + one.size, 0)
          for (const one of ['fast', 'slow'] as const) {
            expect(offered(one)).toBeLessThanOrEqual(Math.max(0, free - assumed))
          }
        }
      }),
      { numRuns: 1_000 },
    )
  })
})
