// Reserves capacity for volumes that the capacity reports do not include yet, because they are only requested or were
// created after the report was produced. Without reservations, a burst of pods would use the same free bytes repeatedly.
//
//   assumed ──node selected──→ requested ──created──→ created ──reported, deleted or timed out──→ removed
//      └─ released ──→ removed     ├─ the selected node is lost, or timed out ──→ removed
//                                  └─ failed, or created on other nodes ──→ removed (*)
//
// (*) Volumes of that size or larger do not fit the report for a minute.

import type { Clock } from '../../../../base/clock.ts'
import type { ObjectKey } from '../../../../client/index.ts'
import { getOrCreate } from '../../../get-or-create.ts'
import type { CapacityIndex } from './capacity-index.ts'
import type { CapacityReport } from './capacity-report.ts'

export interface ReservationOptions {
  readonly index: CapacityIndex
  readonly clock: Clock
  /** Returns the provisioner of a class, or undefined if the class does not exist. */
  readonly driverOf: (className: string) => string | undefined
  /** Called when a reservation or a failure of this driver ends: more volumes may fit. */
  readonly onReleased: (driver: string) => void
  /** How long a created volume stays reserved if no report includes it, as with thin provisioning. */
  readonly reportTimeoutMs?: number
  /** How long a volume stays reserved from other classes after the report of its own class includes it. */
  readonly otherReportsTimeoutMs?: number
  /** How long a requested volume stays reserved. */
  readonly creationTimeoutMs?: number
  /** How long a requested volume stays reserved after its claim is deleted. */
  readonly orphanTimeoutMs?: number
  /** How long volumes of the same size or larger do not fit the report after a volume could not be created. */
  readonly failureTtlMs?: number
}

export interface RequestedVolume {
  readonly claimKey: ObjectKey
  readonly claimUid: string
  readonly driver: string
  readonly bytes: bigint
  /** The report that was selected for the volume. */
  readonly report: CapacityReport
}

/** Two default polling intervals of the capacity producer. */
const REPORT_TIMEOUT_MS = 120_000
const OTHER_REPORTS_TIMEOUT_MS = 10_000
const CREATION_TIMEOUT_MS = 900_000
/** The duration of a driver call, plus the delay until the scheduler receives the volume. */
const ORPHAN_TIMEOUT_MS = 15_000
const FAILURE_TTL_MS = 60_000
const SWEEP_MS_MIN = 1_000

interface Reservation {
  readonly claimKey: ObjectKey
  readonly claimUid: string
  readonly driver: string
  readonly bytes: bigint
  readonly ownReport: ObjectKey
  state: 'assumed' | 'requested' | 'created'
  /** Monotonic time. */
  endsAtMs: number
  /** Bytes of the volume that each report does not include yet. */
  readonly unreportedBytes: Map<ObjectKey, bigint>
  /** Decreases of each report that were attributed to this volume before it was known to be created. */
  readonly attributedBytes: Map<ObjectKey, bigint>
}

/**
 * Bytes are subtracted from `capacity` only, never from `maximumVolumeSize`, which limits a single volume.
 *
 * Classes of one driver may share a pool, and CSI does not expose which do. A volume is therefore subtracted from the
 * reports of all classes of its driver about the same nodes, in proportion to the reported capacities: if the class
 * `mirrored` reports half of the capacity of `striped`, a mirrored volume subtracts twice its size from `striped`.
 *
 * A report includes a volume once it has decreased by the volume's size. Timestamps are not used, because a report
 * may have been produced before the volume was created. A decrease is attributed to created volumes first, then to
 * requested volumes. If another requested volume is created first, the decrease is attributed to that volume instead.
 */
export class Reservations {
  readonly #options: ReservationOptions
  readonly #byClaim = new Map<ObjectKey, Reservation>()
  readonly #byReport = new Map<ObjectKey, Set<Reservation>>()
  readonly #attributedByReport = new Map<ObjectKey, Set<Reservation>>()
  readonly #failures = new Map<ObjectKey, { driver: string; endsAtMs: number }>()
  #isStopped = false
  #cancelSweep: (() => void) | undefined
  #sweepAtMs = Number.POSITIVE_INFINITY

  constructor(options: ReservationOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#byClaim.size
  }

  /** Returns the bytes of a report that are reserved for other claims than `ownClaims`. */
  reservedForOthers({ key, ledger: { reservedBytes } }: CapacityReport, ownClaims: readonly ObjectKey[]): bigint {
    if (reservedBytes === 0n) return reservedBytes
    let remainingBytes = reservedBytes
    for (const claim of ownClaims) remainingBytes -= this.#byClaim.get(claim)?.unreportedBytes.get(key) ?? 0n
    return remainingBytes
  }

  stateOf(claimKey: ObjectKey): Reservation['state'] | undefined {
    return this.#byClaim.get(claimKey)?.state
  }

  /** Reserves capacity for a volume that the scheduler is about to request. */
  assume(volume: RequestedVolume): void {
    if (this.#byClaim.get(volume.claimKey)?.claimUid === volume.claimUid) return // reserved by an earlier attempt
    this.#add(volume, 'assumed', Number.POSITIVE_INFINITY)
  }

  /** Handles a claim whose node was selected. Returns false if the claim has no reservation. */
  nodeSelected(claimKey: ObjectKey, claimUid: string): boolean {
    const reservation = this.#byClaim.get(claimKey)
    if (reservation?.claimUid !== claimUid) return false
    if (reservation.state !== 'assumed') return true
    reservation.state = 'requested' // the provisioner now creates the volume
    reservation.endsAtMs = this.#now() + this.#creationTimeoutMs
    this.#sweepAt(reservation.endsAtMs)
    return true
  }

  /** Reserves capacity for a claim whose node was selected by another scheduler, a user or a previous process. */
  adopt(volume: RequestedVolume): void {
    this.#add(volume, 'requested', this.#now() + this.#creationTimeoutMs)
  }

  /** Handles a claim that was bound to its volume. Reports may not include the volume yet. */
  volumeCreated(claimKey: ObjectKey, claimUid: string): void {
    const reservation = this.#byClaim.get(claimKey)
    if (!reservation || reservation.claimUid !== claimUid || reservation.state === 'created') return
    this.#markCreated(reservation)
  }

  /** Removes the reservation of an attempt that ended before the node was selected. */
  release(claimKey: ObjectKey): void {
    const reservation = this.#byClaim.get(claimKey)
    if (reservation?.state === 'assumed') this.#end(reservation)
  }

  /** Handles a volume that is no longer requested on the selected node, although it may fit there. */
  provisioningCancelled(claimKey: ObjectKey, claimUid: string): void {
    const reservation = this.#byClaim.get(claimKey)
    if (reservation?.claimUid === claimUid && reservation.state === 'requested') this.#end(reservation)
  }

  /** Handles a volume that cannot be created on the selected node. */
  provisioningFailed(claimKey: ObjectKey, claimUid: string): void {
    const reservation = this.#byClaim.get(claimKey)
    if (!reservation || reservation.claimUid !== claimUid || reservation.state !== 'requested') return
    this.#recordFailure(reservation.ownReport, reservation)
    this.#end(reservation)
  }

  /** Handles a volume that the driver created on other nodes: this counts as a failure on the selected node. */
  createdOnOtherNodes(volume: RequestedVolume): void {
    this.#recordFailure(volume.report.key, volume)
    const reservation = this.#byClaim.get(volume.claimKey)
    if (reservation?.claimUid === volume.claimUid) this.#end(reservation)
  }

  /** Handles a deleted claim. Its volume may still be created, and deleted afterwards. */
  claimDeleted(claimKey: ObjectKey): void {
    const reservation = this.#byClaim.get(claimKey)
    if (!reservation || reservation.state === 'created') return
    if (reservation.state === 'assumed') {
      this.#end(reservation)
      return
    }
    this.#markCreated(reservation)
    this.#endWithin(reservation, this.#options.orphanTimeoutMs ?? ORPHAN_TIMEOUT_MS)
  }

  /** Handles a deleted volume. Volumes that exist only between two reports are never included in one. */
  volumeDeleted(claimKey: ObjectKey, claimUid: string): void {
    const reservation = this.#byClaim.get(claimKey)
    if (reservation?.claimUid === claimUid && reservation.state === 'created') this.#end(reservation)
  }

  /** Handles a new or changed report. */
  reportChanged(current: CapacityReport, previous: CapacityReport | undefined): void {
    this.#dropFailure(current.key)
    if (!previous) this.#reserveFromNew(current)
    else if (previous.capacityBytes !== undefined && current.capacityBytes !== undefined) {
      this.#attribute(current.key, previous.capacityBytes - current.capacityBytes)
    }
  }

  /** Handles a deleted report. */
  reportDeleted(report: ObjectKey): void {
    this.#failures.delete(report)
    for (const reservation of this.#byReport.get(report) ?? []) reservation.unreportedBytes.delete(report)
    for (const reservation of this.#attributedByReport.get(report) ?? []) reservation.attributedBytes.delete(report)
    this.#byReport.delete(report)
    this.#attributedByReport.delete(report)
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelSweep?.()
  }

  #now(): number {
    return this.#options.clock.monotonicMs()
  }

  #add(volume: RequestedVolume, state: 'assumed' | 'requested', endsAtMs: number): void {
    const existingReservation = this.#byClaim.get(volume.claimKey)
    if (existingReservation) this.#end(existingReservation)
    const { index, driverOf } = this.#options
    const { report, driver, bytes, claimUid, claimKey } = volume
    const unreportedBytes = new Map<ObjectKey, bigint>()
    for (const sibling of index.reportsInSegment(report.segment)) {
      const isOfDriver = sibling.key === report.key || driverOf(sibling.className) === driver
      if (isOfDriver) unreportedBytes.set(sibling.key, reservedBytes(sibling, report, bytes))
    }
    const reservation: Reservation = {
      claimKey,
      claimUid,
      driver,
      bytes,
      ownReport: report.key,
      state,
      endsAtMs,
      unreportedBytes,
      attributedBytes: new Map(),
    }
    this.#byClaim.set(claimKey, reservation)
    for (const [key, amount] of unreportedBytes) this.#reserve(key, reservation, amount)
    this.#sweepAt(endsAtMs)
  }

  #reserve(report: ObjectKey, reservation: Reservation, amount: bigint): void {
    const ledger = this.#options.index.get(report)?.ledger
    if (ledger) ledger.reservedBytes += amount
    getOrCreate(this.#byReport, report, () => new Set()).add(reservation)
  }

  #unreserve(report: ObjectKey, reservation: Reservation, amount: bigint): void {
    const unreported = reservation.unreportedBytes.get(report) ?? 0n
    const ledger = this.#options.index.get(report)?.ledger
    if (ledger) ledger.reservedBytes -= amount
    if (unreported > amount) {
      reservation.unreportedBytes.set(report, unreported - amount)
      return
    }
    reservation.unreportedBytes.delete(report)
    const reservations = this.#byReport.get(report)
    reservations?.delete(reservation)
    if (reservations?.size === 0) this.#byReport.delete(report)
  }

  /** Subtracts existing reservations from the first report of a class, which may have been produced before them. */
  #reserveFromNew(report: CapacityReport): void {
    const { index, driverOf } = this.#options
    const driver = driverOf(report.className)
    const segmentReservations = new Set<Reservation>()
    for (const sibling of index.reportsInSegment(report.segment)) {
      for (const reservation of this.#byReport.get(sibling.key) ?? []) segmentReservations.add(reservation)
    }
    for (const reservation of segmentReservations) {
      if (reservation.driver !== driver || reservation.unreportedBytes.has(report.key)) continue
      const ownReport = index.get(reservation.ownReport)
      const amount = ownReport ? reservedBytes(report, ownReport, reservation.bytes) : reservation.bytes
      reservation.unreportedBytes.set(report.key, amount)
      this.#reserve(report.key, reservation, amount)
    }
  }

  /** Attributes the decrease of a report to volumes that it did not include before. */
  #attribute(report: ObjectKey, decrease: bigint): void {
    const reservations = this.#byReport.get(report)
    if (!reservations || decrease <= 0n) return
    let remainingBytes = decrease
    for (const state of ['created', 'requested'] as const) {
      for (const reservation of [...reservations]) {
        if (remainingBytes === 0n) return
        if (reservation.state !== state) continue
        const amount = minBytes(remainingBytes, reservation.unreportedBytes.get(report) ?? 0n)
        remainingBytes -= amount
        this.#unreserve(report, reservation, amount)
        if (state === 'requested') this.#recordAttribution(report, reservation, amount)
        if (reservation.state === 'created' && !reservation.unreportedBytes.has(report))
          this.#markReported(reservation, report)
      }
    }
  }

  #recordAttribution(report: ObjectKey, reservation: Reservation, amount: bigint): void {
    reservation.attributedBytes.set(report, (reservation.attributedBytes.get(report) ?? 0n) + amount)
    getOrCreate(this.#attributedByReport, report, () => new Set()).add(reservation)
  }

  /** Attributes decreases to this created volume instead of requested volumes, whose capacity is then reserved again. */
  #takeOverAttributions(reservation: Reservation): void {
    for (const [report, bytes] of [...reservation.unreportedBytes]) {
      let remainingBytes = bytes
      for (const other of [...(this.#attributedByReport.get(report) ?? [])]) {
        const amount = minBytes(remainingBytes, other.attributedBytes.get(report) ?? 0n)
        if (amount === 0n) break
        remainingBytes -= amount
        this.#undoAttribution(report, other, amount)
        this.#unreserve(report, reservation, amount)
        other.unreportedBytes.set(report, (other.unreportedBytes.get(report) ?? 0n) + amount)
        this.#reserve(report, other, amount)
      }
    }
  }

  #undoAttribution(report: ObjectKey, reservation: Reservation, amount: bigint): void {
    const attributed = reservation.attributedBytes.get(report) ?? 0n
    if (attributed > amount) {
      reservation.attributedBytes.set(report, attributed - amount)
      return
    }
    reservation.attributedBytes.delete(report)
    const reservations = this.#attributedByReport.get(report)
    reservations?.delete(reservation)
    if (reservations?.size === 0) this.#attributedByReport.delete(report)
  }

  #dropAttributions(reservation: Reservation): void {
    for (const [report, amount] of [...reservation.attributedBytes]) this.#undoAttribution(report, reservation, amount)
  }

  #markReported(reservation: Reservation, report: ObjectKey): void {
    if (reservation.unreportedBytes.size === 0) this.#byClaim.delete(reservation.claimKey)
    else if (reservation.ownReport === report) this.#endWithin(reservation, this.#otherReportsTimeoutMs)
  }

  #markCreated(reservation: Reservation): void {
    reservation.state = 'created'
    reservation.endsAtMs = Number.POSITIVE_INFINITY
    this.#dropAttributions(reservation)
    this.#takeOverAttributions(reservation)
    if (reservation.unreportedBytes.size === 0) this.#byClaim.delete(reservation.claimKey)
    else if (reservation.unreportedBytes.has(reservation.ownReport)) {
      this.#endWithin(reservation, this.#options.reportTimeoutMs ?? REPORT_TIMEOUT_MS)
    } else this.#endWithin(reservation, this.#otherReportsTimeoutMs)
  }

  get #creationTimeoutMs(): number {
    return this.#options.creationTimeoutMs ?? CREATION_TIMEOUT_MS
  }

  get #otherReportsTimeoutMs(): number {
    return this.#options.otherReportsTimeoutMs ?? OTHER_REPORTS_TIMEOUT_MS
  }

  #endWithin(reservation: Reservation, withinMs: number): void {
    reservation.endsAtMs = Math.min(reservation.endsAtMs, this.#now() + withinMs)
    this.#sweepAt(reservation.endsAtMs)
  }

  #end(reservation: Reservation): void {
    this.#byClaim.delete(reservation.claimKey)
    this.#dropAttributions(reservation)
    const releasesCapacity = reservation.unreportedBytes.size > 0
    for (const [report, amount] of [...reservation.unreportedBytes]) this.#unreserve(report, reservation, amount)
    if (releasesCapacity) this.#options.onReleased(reservation.driver)
  }

  #recordFailure(report: ObjectKey, { driver, bytes }: Pick<RequestedVolume, 'driver' | 'bytes'>): void {
    const ledger = this.#options.index.get(report)?.ledger
    if (!ledger) return
    ledger.failedBytes = minBytes(bytes, ledger.failedBytes ?? bytes)
    const endsAtMs = this.#now() + (this.#options.failureTtlMs ?? FAILURE_TTL_MS)
    this.#failures.set(report, { driver, endsAtMs })
    this.#sweepAt(endsAtMs)
  }

  #dropFailure(report: ObjectKey): void {
    const failure = this.#failures.get(report)
    if (!failure) return
    this.#failures.delete(report)
    const ledger = this.#options.index.get(report)?.ledger
    if (ledger) ledger.failedBytes = undefined
    this.#options.onReleased(failure.driver)
  }

  #sweepAt(atMs: number): void {
    if (this.#isStopped || atMs === Number.POSITIVE_INFINITY || atMs >= this.#sweepAtMs) return
    this.#cancelSweep?.()
    this.#sweepAtMs = atMs
    const inMs = Math.max(SWEEP_MS_MIN, atMs - this.#now())
    this.#cancelSweep = this.#options.clock.after(inMs, () => this.#sweep())
  }

  #sweep(): void {
    const nowMs = this.#now()
    this.#sweepAtMs = Number.POSITIVE_INFINITY
    let nextMs = Number.POSITIVE_INFINITY
    for (const reservation of [...this.#byClaim.values()]) {
      if (reservation.endsAtMs <= nowMs) this.#end(reservation)
      else nextMs = Math.min(nextMs, reservation.endsAtMs)
    }
    for (const [report, { endsAtMs }] of [...this.#failures]) {
      if (endsAtMs <= nowMs) this.#dropFailure(report)
      else nextMs = Math.min(nextMs, endsAtMs)
    }
    this.#sweepAt(nextMs)
  }
}

/**
 * Returns the bytes to reserve from `report` for a volume of `volumeReport`: at least the volume's size. An excess
 * lasts only until the reports include the volume.
 */
function reservedBytes(report: CapacityReport, volumeReport: CapacityReport, bytes: bigint): bigint {
  const share = shareOf(report, volumeReport, bytes)
  return share > bytes ? share : bytes
}

/** Scales `bytes` of `volumeReport` to `report`, in proportion to their capacities. Rounds up. */
export function shareOf(report: CapacityReport, volumeReport: CapacityReport, bytes: bigint): bigint {
  const { capacityBytes } = report
  const volumeCapacity = volumeReport.capacityBytes
  const isComparable = capacityBytes !== undefined && volumeCapacity !== undefined && volumeCapacity > 0n
  if (report.key === volumeReport.key || !isComparable) return bytes
  return (bytes * capacityBytes + volumeCapacity - 1n) / volumeCapacity
}

export const minBytes = (a: bigint, b: bigint): bigint => (a < b ? a : b)
