import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CSIStorageCapacity } from '../../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { manualClock } from '../../../../base/manual-clock.ts'
import { CapacityIndex } from './capacity-index.ts'
import { Reservations } from './reservations.ts'

const DRIVER = 'd.example.com'

function aLedger() {
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
  const wanted = (claim: string, bytes: number, by = 'fast') => ({
    claimKey: `ns/${claim}`,
    claimUid: claim,
    driver: DRIVER,
    bytes: BigInt(bytes),
    report: index.get(`ns/${by}`)!,
  })
  const held = (name: string) => Number(reservations.reservedForOthers(index.get(`ns/${name}`)!, []))
  return { clock, index, reservations, report, wanted, held, freed }
}
/** From the decision to the volume. */
function make(ledger: ReturnType<typeof aLedger>, claim: string, bytes: number, by?: string) {
  ledger.reservations.assume(ledger.wanted(claim, bytes, by))
  ledger.reservations.nodeSelected(`ns/${claim}`, claim)
  ledger.reservations.volumeCreated(`ns/${claim}`, claim)
}

describe('capacity that is spoken for', () => {
  it('PLUS-3 is held back from the decision until a report has gone down by it', () => {
    const ledger = aLedger()
    ledger.report('fast', 100)
    ledger.reservations.assume(ledger.wanted('c', 10))
    expect(ledger.reserved('fast')).toBe(10)
    ledger.reservations.nodeSelected('ns/c', 'c')
    ledger.reservations.volumeCreated('ns/c', 'c')
    expect(ledger.reserved('fast')).toBe(10)
    ledger.report('fast', 90)
    expect(ledger.reserved('fast')).toBe(0)
    expect(ledger.reservations.size).toBe(0)
  })

  it('PLUS-3 a late report that counts an earlier volume does not free a later one', () => {
    const ledger = aLedger()
    ledger.report('fast', 100)
    make(ledger, 'early', 10)
    make(ledger, 'late', 10)
    ledger.report('fast', 90)
    expect(ledger.reserved('fast')).toBe(10)
    ledger.report('fast', 95) // something was deleted
    expect(ledger.reserved('fast')).toBe(10)
    ledger.report('fast', 85)
    expect(ledger.reserved('fast')).toBe(0)
  })

  it('PLUS-3 a report that is faster than the claim counts as well', () => {
    const ledger = aLedger()
    ledger.report('fast', 100)
    ledger.reservations.assume(ledger.wanted('c', 10))
    ledger.reservations.nodeSelected('ns/c', 'c')
    ledger.report('fast', 90)
    expect(ledger.reserved('fast')).toBe(0)
    ledger.reservations.volumeCreated('ns/c', 'c')
    expect(ledger.reservations.size).toBe(0)
  })

  it('PLUS-3 what was counted for a volume that is still being made is held back again once another is known to be made', async () => {
    const ledger = aLedger()
    ledger.report('fast', 100)
    for (const claim of ['slow', 'quick']) {
      ledger.reservations.assume(ledger.wanted(claim, 10))
      ledger.reservations.nodeSelected(`ns/${claim}`, claim)
    }
    ledger.report('fast', 90) // of "quick", which nobody has told us
    expect(ledger.reserved('fast')).toBe(10)
    ledger.reservations.volumeCreated('ns/quick', 'quick')
    expect(ledger.reservations.stateOf('ns/quick')).toBe(undefined)
    await ledger.clock.advance(600_000) // longer than a made one is held back
    expect(ledger.reserved('fast')).toBe(10)
    ledger.reservations.volumeCreated('ns/slow', 'slow')
    ledger.report('fast', 80)
    expect(ledger.reserved('fast')).toBe(0)
    expect(ledger.reservations.size).toBe(0)
  })

  it('PLUS-3 a report cannot count what nobody has been asked for', () => {
    const ledger = aLedger()
    ledger.report('fast', 100)
    ledger.reservations.assume(ledger.wanted('c', 10))
    ledger.report('fast', 80)
    expect(ledger.reserved('fast')).toBe(10)
  })

  it('PLUS-3 classes of one driver in one place share the loss, in proportion to what they report', () => {
    const ledger = aLedger()
    ledger.report('fast', 50) // mirrored
    ledger.report('striped', 100)
    ledger.report('foreign', 100)
    ledger.report('elsewhere', 100, 'elsewhere', 'b')
    ledger.reservations.assume(ledger.wanted('c', 10))
    expect(['fast', 'striped', 'foreign', 'elsewhere'].map(ledger.reserved)).toEqual([10, 20, 0, 0])
    ledger.reservations.release('ns/c')
    expect(ledger.reserved('striped')).toBe(0)
    expect(ledger.freed).toEqual([DRIVER])
  })

  it('PLUS-3 a class that reports for the first time may be late as well: volumes made before are held back from it', async () => {
    const ledger = aLedger()
    ledger.report('fast', 100)
    make(ledger, 'c', 10)
    ledger.report('slow', 100) // as it was before the volume was made
    expect(ledger.reserved('slow')).toBe(10)
    ledger.report('fast', 90)
    ledger.report('slow', 90)
    expect(ledger.reserved('slow')).toBe(0)

    make(ledger, 'd', 10)
    ledger.report('prompt', 80) // has counted the volume already, which nobody can tell
    ledger.report('fast', 80)
    ledger.report('slow', 80)
    expect(ledger.reserved('prompt')).toBe(10)
    await ledger.clock.advance(10_000)
    expect(ledger.reserved('prompt')).toBe(0)
    expect(ledger.reservations.size).toBe(0)
  })

  it('PLUS-3 a class of another pool stops being held back soon after its own report has counted the volume', async () => {
    const ledger = aLedger()
    ledger.report('fast', 100)
    ledger.report('slow', 100)
    make(ledger, 'c', 10)
    ledger.report('fast', 90)
    expect(ledger.reserved('slow')).toBe(10)
    await ledger.clock.advance(11_000)
    expect(ledger.reserved('slow')).toBe(0)
    expect(ledger.freed).toEqual([DRIVER])
  })

  it('PLUS-3 a volume that no report ever counts is held back for a bounded time', async () => {
    const ledger = aLedger()
    ledger.report('fast', 100)
    make(ledger, 'thin', 10)
    await ledger.clock.advance(119_000)
    expect(ledger.reserved('fast')).toBe(10)
    await ledger.clock.advance(2_000)
    expect(ledger.reserved('fast')).toBe(0)
    expect(ledger.freed).toEqual([DRIVER])
  })

  it('PLUS-3 a volume that is deleted before any report has counted it is held back no longer', () => {
    const ledger = aLedger()
    ledger.report('fast', 100)
    make(ledger, 'short', 10)
    ledger.reservations.claimDeleted('ns/short')
    ledger.reservations.volumeDeleted('ns/short', 'another uid')
    expect(ledger.reserved('fast')).toBe(10)
    ledger.reservations.volumeDeleted('ns/short', 'short')
    expect(ledger.reserved('fast')).toBe(0)
    expect(ledger.freed).toEqual([DRIVER])
  })

  it('PLUS-3 a claim that is deleted while its volume is asked for is held back for as long as a call may take', async () => {
    const ledger = aLedger()
    ledger.report('fast', 100)
    ledger.reservations.assume(ledger.wanted('c', 10))
    ledger.reservations.nodeSelected('ns/c', 'c')
    ledger.reservations.claimDeleted('ns/c')
    await ledger.clock.advance(14_000)
    expect(ledger.reserved('fast')).toBe(10)
    await ledger.clock.advance(2_000)
    expect(ledger.reserved('fast')).toBe(0)
    expect(ledger.freed).toEqual([DRIVER])
  })

  it('PLUS-3 a creation that failed frees its bytes, and the place is refused for that size until it reports or for a minute', async () => {
    const ledger = aLedger()
    ledger.report('fast', 100)
    ledger.reservations.assume(ledger.wanted('c', 10))
    ledger.reservations.nodeSelected('ns/c', 'c')
    ledger.reservations.provisioningFailed('ns/c', 'c')
    expect(ledger.reserved('fast')).toBe(0)
    expect(ledger.index.get('ns/fast')?.ledger.refused).toBe(10n)
    await ledger.clock.advance(61_000)
    expect(ledger.index.get('ns/fast')?.ledger.refused).toBe(undefined)
    expect(ledger.freed).toHaveLength(2)
  })

  it('PLUS-3 a volume that was made elsewhere frees its bytes, and the place is refused as if the driver had said no', async () => {
    const ledger = aLedger()
    ledger.report('fast', 100)
    const wanted = ledger.wanted('c', 10)
    make(ledger, 'c', 10)
    ledger.reservations.createdElsewhere(wanted)
    expect(ledger.reserved('fast')).toBe(0)
    expect(ledger.index.get('ns/fast')?.ledger.refused).toBe(10n)
    await ledger.clock.advance(61_000)
    expect(ledger.index.get('ns/fast')?.ledger.refused).toBe(undefined)
  })

  it('PLUS-3 a claim does not stand in its own way, and its successor of the same name is another', () => {
    const ledger = aLedger()
    ledger.report('fast', 100)
    ledger.reservations.assume(ledger.wanted('c', 10))
    expect(ledger.reservations.reservedForOthers(ledger.index.get('ns/fast')!, ['ns/c'])).toBe(0n)
    ledger.reservations.nodeSelected('ns/c', 'c')
    ledger.reservations.volumeCreated('ns/c', 'another uid')
    expect(ledger.reservations.stateOf('ns/c')).toBe('requested')
  })

  it('PLUS-3 what is reported minus what is held back is never more than what is really free', () => {
    // A pool of two classes, of which one reports from the start; a driver that answers from the past, for each of them
    // from another; and claims that go through their lives in any order. The first report of the later class is no older
    // than what the other has said by then.
    type ClassName = 'fast' | 'slow'
    interface Step {
      readonly do: 'want' | 'ask' | 'make' | 'fail' | 'report'
      readonly at: number
      readonly size: number
      readonly by: ClassName
    }
    const step: fc.Arbitrary<Step> = fc.record({
      do: fc.constantFrom('want', 'ask', 'make', 'fail', 'report'),
      at: fc.nat(3),
      size: fc.integer({ min: 1, max: 20 }),
      by: fc.constantFrom('fast', 'slow'),
    })
    const life = { steps: fc.array(step, { maxLength: 100, size: 'max' }), slowFrom: fc.nat(50) }
    fc.assert(
      fc.property(fc.record(life), ({ steps, slowFrom }) => {
        const ledger = aLedger()
        let free = 100
        const history = [100]
        /** How far the driver's own view has come, by class. */
        const seen: { fast: number; slow: number | undefined } = { fast: 0, slow: undefined }
        const offered = (name: ClassName): number =>
          seen[name] === undefined ? 0 : history[seen[name]]! - ledger.reserved(name)
        ledger.report('fast', 100)
        const claims = new Map<string, { size: number; isAsked: boolean }>()
        const pick = (at: number, isAsked: boolean) => {
          const some = [...claims].filter(([, claim]) => claim.isAsked === isAsked)
          return some[at % some.length]
        }
        for (const [nth, { do: what, at, size, by }] of steps.entries()) {
          if (what === 'want' && offered(by) >= size) {
            ledger.reservations.assume(ledger.wanted(`c${nth}`, size, by))
            claims.set(`c${nth}`, { size, isAsked: false })
          } else if (what === 'report' && (by === 'fast' || nth >= slowFrom)) {
            seen[by] = Math.max(seen[by] ?? seen.fast, history.length - 1 - (size % 3)) // late by up to two volumes
            ledger.report(by, history[seen[by]]!)
          }
          const [name, claim] = pick(at, what !== 'ask') ?? []
          if (name && claim && what === 'ask') {
            ledger.reservations.nodeSelected(`ns/${name}`, name)
            claim.isAsked = true
          } else if (name && claim && what === 'make') {
            expect(free).toBeGreaterThanOrEqual(claim.size) // the driver never has to refuse
            free -= claim.size
            history.push(free)
            ledger.reservations.volumeCreated(`ns/${name}`, name)
            claims.delete(name)
          } else if (name && what === 'fail') {
            ledger.reservations.provisioningFailed(`ns/${name}`, name)
            claims.delete(name)
          }
          const promised = [...claims.values()].reduce((sum, one) => sum + one.size, 0)
          for (const one of ['fast', 'slow'] as const) {
            expect(offered(one)).toBeLessThanOrEqual(Math.max(0, free - promised))
          }
        }
      }),
      { numRuns: 1_000 },
    )
  })
})
