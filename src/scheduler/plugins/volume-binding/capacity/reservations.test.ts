import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CSIStorageCapacity } from '../../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { manualClock } from '../../../../base/manual-clock.ts'
import { CapacityIndex } from './capacity-index.ts'
import { Reservations } from './reservations.ts'

const DRIVER = 'd.example.com'

function createHarness() {
  const clock = manualClock()
  const index = new CapacityIndex()
  const releasedDrivers: string[] = []
  const reservations = new Reservations({
    index,
    clock,
    driverOf: (className) => (className === 'foreign' ? 'other.example.com' : DRIVER),
    onReleased: (driver) => void releasedDrivers.push(driver),
  })
  function report(name: string, bytes: number, className = name, zone = 'a') {
    const object: CSIStorageCapacity = {
      metadata: { namespace: 'ns', name },
      storageClassName: className,
      nodeTopology: { matchLabels: { zone } },
      capacity: String(bytes),
    }
    const { current, previous } = index.put(object)
    reservations.reportChanged(current, previous)
  }
  const aRequest = (claim: string, bytes: number, reportName = 'fast') => ({
    claimKey: `ns/${claim}`,
    claimUid: claim,
    driver: DRIVER,
    bytes: BigInt(bytes),
    report: index.get(`ns/${reportName}`)!,
  })
  const reservedBytes = (name: string) => Number(reservations.reservedForOthers(index.get(`ns/${name}`)!, []))
  return { clock, index, reservations, report, aRequest, reservedBytes, releasedDrivers }
}
/** Performs all steps from the reservation to the created volume. */
function createVolume(harness: ReturnType<typeof createHarness>, claim: string, bytes: number, reportName?: string) {
  harness.reservations.assume(harness.aRequest(claim, bytes, reportName))
  harness.reservations.nodeSelected(`ns/${claim}`, claim)
  harness.reservations.volumeCreated(`ns/${claim}`, claim)
}

describe('capacity reservations', () => {
  it("PLUS-3 last until a report has decreased by the volume's size", () => {
    const harness = createHarness()
    harness.report('fast', 100)
    harness.reservations.assume(harness.aRequest('c', 10))
    expect(harness.reservedBytes('fast')).toBe(10)
    harness.reservations.nodeSelected('ns/c', 'c')
    harness.reservations.volumeCreated('ns/c', 'c')
    expect(harness.reservedBytes('fast')).toBe(10)
    harness.report('fast', 90)
    expect(harness.reservedBytes('fast')).toBe(0)
    expect(harness.reservations.size).toBe(0)
  })

  it('PLUS-3 keep a later volume reserved when a report includes only an earlier one', () => {
    const harness = createHarness()
    harness.report('fast', 100)
    createVolume(harness, 'early', 10)
    createVolume(harness, 'late', 10)
    harness.report('fast', 90)
    expect(harness.reservedBytes('fast')).toBe(10)
    harness.report('fast', 95) // a volume was deleted
    expect(harness.reservedBytes('fast')).toBe(10)
    harness.report('fast', 85)
    expect(harness.reservedBytes('fast')).toBe(0)
  })

  it('PLUS-3 end when a report includes the volume before its claim is bound', () => {
    const harness = createHarness()
    harness.report('fast', 100)
    harness.reservations.assume(harness.aRequest('c', 10))
    harness.reservations.nodeSelected('ns/c', 'c')
    harness.report('fast', 90)
    expect(harness.reservedBytes('fast')).toBe(0)
    harness.reservations.volumeCreated('ns/c', 'c')
    expect(harness.reservations.size).toBe(0)
  })

  it('PLUS-3 are restored for a requested volume if the decrease was caused by another volume', async () => {
    const harness = createHarness()
    harness.report('fast', 100)
    for (const claim of ['slow', 'quick']) {
      harness.reservations.assume(harness.aRequest(claim, 10))
      harness.reservations.nodeSelected(`ns/${claim}`, claim)
    }
    harness.report('fast', 90) // caused by "quick", whose claim is not bound yet
    expect(harness.reservedBytes('fast')).toBe(10)
    harness.reservations.volumeCreated('ns/quick', 'quick')
    expect(harness.reservations.stateOf('ns/quick')).toBe(undefined)
    await harness.clock.advance(600_000) // longer than a created volume stays reserved
    expect(harness.reservedBytes('fast')).toBe(10)
    harness.reservations.volumeCreated('ns/slow', 'slow')
    harness.report('fast', 80)
    expect(harness.reservedBytes('fast')).toBe(0)
    expect(harness.reservations.size).toBe(0)
  })

  it('PLUS-3 ignore a decrease before the node is selected', () => {
    const harness = createHarness()
    harness.report('fast', 100)
    harness.reservations.assume(harness.aRequest('c', 10))
    harness.report('fast', 80)
    expect(harness.reservedBytes('fast')).toBe(10)
  })

  it('PLUS-3 are subtracted from all classes of the driver on the same nodes, in proportion to their reports', () => {
    const harness = createHarness()
    harness.report('fast', 50) // mirrored
    harness.report('striped', 100)
    harness.report('foreign', 100)
    harness.report('zone-b', 100, 'zone-b', 'b')
    harness.reservations.assume(harness.aRequest('c', 10))
    expect(['fast', 'striped', 'foreign', 'zone-b'].map(harness.reservedBytes)).toEqual([10, 20, 0, 0])
    harness.reservations.release('ns/c')
    expect(harness.reservedBytes('striped')).toBe(0)
    expect(harness.releasedDrivers).toEqual([DRIVER])
  })

  it('PLUS-3 are subtracted from the first report of another class, which may be outdated', async () => {
    const harness = createHarness()
    harness.report('fast', 100)
    createVolume(harness, 'c', 10)
    harness.report('slow', 100) // from before the volume was created
    expect(harness.reservedBytes('slow')).toBe(10)
    harness.report('fast', 90)
    harness.report('slow', 90)
    expect(harness.reservedBytes('slow')).toBe(0)

    createVolume(harness, 'd', 10)
    harness.report('prompt', 80) // already includes the volume, which cannot be detected
    harness.report('fast', 80)
    harness.report('slow', 80)
    expect(harness.reservedBytes('prompt')).toBe(10)
    await harness.clock.advance(10_000)
    expect(harness.reservedBytes('prompt')).toBe(0)
    expect(harness.reservations.size).toBe(0)
  })

  it("PLUS-3 end for other classes shortly after the report of the volume's class includes the volume", async () => {
    const harness = createHarness()
    harness.report('fast', 100)
    harness.report('slow', 100)
    createVolume(harness, 'c', 10)
    harness.report('fast', 90)
    expect(harness.reservedBytes('slow')).toBe(10)
    await harness.clock.advance(11_000)
    expect(harness.reservedBytes('slow')).toBe(0)
    expect(harness.releasedDrivers).toEqual([DRIVER])
  })

  it('PLUS-3 time out for a volume that no report includes', async () => {
    const harness = createHarness()
    harness.report('fast', 100)
    createVolume(harness, 'thin', 10)
    await harness.clock.advance(119_000)
    expect(harness.reservedBytes('fast')).toBe(10)
    await harness.clock.advance(2_000)
    expect(harness.reservedBytes('fast')).toBe(0)
    expect(harness.releasedDrivers).toEqual([DRIVER])
  })

  it('PLUS-3 end when the volume is deleted before a report includes it', () => {
    const harness = createHarness()
    harness.report('fast', 100)
    createVolume(harness, 'short', 10)
    harness.reservations.claimDeleted('ns/short')
    harness.reservations.volumeDeleted('ns/short', 'another uid')
    expect(harness.reservedBytes('fast')).toBe(10)
    harness.reservations.volumeDeleted('ns/short', 'short')
    expect(harness.reservedBytes('fast')).toBe(0)
    expect(harness.releasedDrivers).toEqual([DRIVER])
  })

  it('PLUS-3 last for 15 seconds after the claim of a requested volume is deleted', async () => {
    const harness = createHarness()
    harness.report('fast', 100)
    harness.reservations.assume(harness.aRequest('c', 10))
    harness.reservations.nodeSelected('ns/c', 'c')
    harness.reservations.claimDeleted('ns/c')
    await harness.clock.advance(14_000)
    expect(harness.reservedBytes('fast')).toBe(10)
    await harness.clock.advance(2_000)
    expect(harness.reservedBytes('fast')).toBe(0)
    expect(harness.releasedDrivers).toEqual([DRIVER])
  })

  it('PLUS-3 end when provisioning fails; volumes of that size or larger do not fit the report for a minute', async () => {
    const harness = createHarness()
    harness.report('fast', 100)
    harness.reservations.assume(harness.aRequest('c', 10))
    harness.reservations.nodeSelected('ns/c', 'c')
    harness.reservations.provisioningFailed('ns/c', 'c')
    expect(harness.reservedBytes('fast')).toBe(0)
    expect(harness.index.get('ns/fast')?.ledger.failedBytes).toBe(10n)
    await harness.clock.advance(61_000)
    expect(harness.index.get('ns/fast')?.ledger.failedBytes).toBe(undefined)
    expect(harness.releasedDrivers).toHaveLength(2)
  })

  it('PLUS-11 end without a failure when the selected node is lost', () => {
    const harness = createHarness()
    harness.report('fast', 100)
    harness.reservations.assume(harness.aRequest('c', 10))
    harness.reservations.nodeSelected('ns/c', 'c')
    harness.reservations.provisioningCancelled('ns/c', 'another uid')
    expect(harness.reservedBytes('fast')).toBe(10)
    harness.reservations.provisioningCancelled('ns/c', 'c')
    expect(harness.reservedBytes('fast')).toBe(0)
    expect(harness.index.get('ns/fast')?.ledger.failedBytes).toBe(undefined)
    expect(harness.releasedDrivers).toEqual([DRIVER])
  })

  it('PLUS-3 end when the volume is created on other nodes; volumes of that size or larger do not fit the report for a minute', async () => {
    const harness = createHarness()
    harness.report('fast', 100)
    const request = harness.aRequest('c', 10)
    createVolume(harness, 'c', 10)
    harness.reservations.createdOnOtherNodes(request)
    expect(harness.reservedBytes('fast')).toBe(0)
    expect(harness.index.get('ns/fast')?.ledger.failedBytes).toBe(10n)
    await harness.clock.advance(61_000)
    expect(harness.index.get('ns/fast')?.ledger.failedBytes).toBe(undefined)
  })

  it('PLUS-3 are not subtracted for the claim itself, and ignore a new claim with the same name', () => {
    const harness = createHarness()
    harness.report('fast', 100)
    harness.reservations.assume(harness.aRequest('c', 10))
    expect(harness.reservations.reservedForOthers(harness.index.get('ns/fast')!, ['ns/c'])).toBe(0n)
    harness.reservations.nodeSelected('ns/c', 'c')
    harness.reservations.volumeCreated('ns/c', 'another uid')
    expect(harness.reservations.stateOf('ns/c')).toBe('requested')
  })

  it('PLUS-3 keep the reported capacity minus the reserved bytes within the free capacity of the pool', () => {
    // Two classes share a pool. "fast" is reported from the start and "slow" from a random step on; reports lag behind by a
    // different number of volumes for each class, but the first report of "slow" is at least as recent as the last of "fast".
    type ClassName = 'fast' | 'slow'
    interface Step {
      readonly do: 'assume' | 'select' | 'create' | 'fail' | 'report'
      readonly at: number
      readonly size: number
      readonly reportName: ClassName
    }
    const step: fc.Arbitrary<Step> = fc.record({
      do: fc.constantFrom('assume', 'select', 'create', 'fail', 'report'),
      at: fc.nat(3),
      size: fc.integer({ min: 1, max: 20 }),
      reportName: fc.constantFrom('fast', 'slow'),
    })
    const scenario = { steps: fc.array(step, { maxLength: 100, size: 'max' }), slowFrom: fc.nat(50) }
    fc.assert(
      fc.property(fc.record(scenario), ({ steps, slowFrom }) => {
        const harness = createHarness()
        let free = 100
        const history = [100]
        /** The position in the history of the last report, by class. */
        const reportedAt: { fast: number; slow: number | undefined } = { fast: 0, slow: undefined }
        const availableBytes = (name: ClassName): number =>
          reportedAt[name] === undefined ? 0 : history[reportedAt[name]]! - harness.reservedBytes(name)
        harness.report('fast', 100)
        const claims = new Map<string, { size: number; isSelected: boolean }>()
        const pick = (at: number, isSelected: boolean) => {
          const matching = [...claims].filter(([, claim]) => claim.isSelected === isSelected)
          return matching[at % matching.length]
        }
        for (const [position, { do: action, at, size, reportName }] of steps.entries()) {
          if (action === 'assume' && availableBytes(reportName) >= size) {
            harness.reservations.assume(harness.aRequest(`c${position}`, size, reportName))
            claims.set(`c${position}`, { size, isSelected: false })
          } else if (action === 'report' && (reportName === 'fast' || position >= slowFrom)) {
            reportedAt[reportName] = Math.max(
              reportedAt[reportName] ?? reportedAt.fast,
              history.length - 1 - (size % 3),
            ) // lags by up to two volumes
            harness.report(reportName, history[reportedAt[reportName]]!)
          }
          const [name, claim] = pick(at, action !== 'select') ?? []
          if (name && claim && action === 'select') {
            harness.reservations.nodeSelected(`ns/${name}`, name)
            claim.isSelected = true
          } else if (name && claim && action === 'create') {
            expect(free).toBeGreaterThanOrEqual(claim.size) // CreateVolume never fails
            free -= claim.size
            history.push(free)
            harness.reservations.volumeCreated(`ns/${name}`, name)
            claims.delete(name)
          } else if (name && action === 'fail') {
            harness.reservations.provisioningFailed(`ns/${name}`, name)
            claims.delete(name)
          }
          const assumed = [...claims.values()].reduce((sum, pending) => sum + pending.size, 0)
          for (const className of ['fast', 'slow'] as const) {
            expect(availableBytes(className)).toBeLessThanOrEqual(Math.max(0, free - assumed))
          }
        }
      }),
      { numRuns: 1_000 },
    )
  })
})
