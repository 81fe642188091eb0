// Reserved capacity: a report shows the free space at the time it was produced. Volumes requested since then, or created
// but not yet counted by the report, are subtracted here, so that a burst of pods does not use the same bytes twice.
//
// Decisions:
// - Bytes are subtracted from `capacity` only, never from `maximumVolumeSize`, which limits a single volume.
// - Classes of one driver may share a pool, and CSI does not say which do. So a volume is subtracted from the reports of
//   every class of its driver about the same nodes, in proportion to what they report: if the class `mirrored` reports
//   half of what `striped` does, a mirrored volume takes twice its size from `striped`.
// - A report has counted a volume when it decreased by the volume's size. Timing is not trusted: a report that was being
//   produced while the volume was created, or a driver that reports late, must not free its bytes.
//   A decrease is attributed to created volumes first, then to requested ones that may have been created unnoticed. If
//   another requested volume turns out to be created first, the decrease is attributed to that one instead.
// - Once the report of its own class has counted a volume, the other classes get `othersCountWithinMs`: one that has not
//   decreased by then belongs to another pool.
// - A volume that no report ever counts (thin provisioning) is released after `reportedWithinMs`; one that is requested
//   and never created, after `createdWithinMs`, or `orphanCreatedWithinMs` after its claim was deleted.
// - A deleted volume is released at once. Short-lived pods may come and go between two reports, which then never show
//   their volumes.
//
//   assumed ──node selected──→ requested ──created──→ created ──counted, deleted or timed out──→ removed
//      └─ released ──→ removed     └─ failed, or created elsewhere ──→ removed; the refusal is remembered for a while

import type { Clock } from '../../../../base/clock.ts'
import type { ObjectKey } from '../../../../client/index.ts'
import { getOrCreate } from '../../../get-or-create.ts'
import type { CapacityIndex } from './capacity-index.ts'
import type { CapacityReport } from './capacity-report.ts'

export interface ReservationOptions {
  readonly index: CapacityIndex
  readonly clock: Clock
  /** The provisioner of a class; undefined if the class does not exist. */
  readonly driverOf: (className: string) => string | undefined
  /** Capacity of this driver was released without a report that shows it. */
  readonly onFreed: (driver: string) => void
  readonly reportedWithinMs?: number
  readonly othersCountWithinMs?: number
  readonly createdWithinMs?: number
  readonly orphanCreatedWithinMs?: number
  readonly refusedForMs?: number
}

export interface RequestedVolume {
  readonly claimKey: ObjectKey
  readonly claimUid: string
  readonly driver: string
  readonly bytes: bigint
  /** The report by which it fits. */
  readonly report: CapacityReport
}

/** Two polling intervals of the capacity producer. */
const REPORTED_WITHIN_MS = 120_000
const OTHERS_COUNT_WITHIN_MS = 10_000
const CREATED_WITHIN_MS = 900_000
/** The time of a driver call, and some more until its volume is visible. */
const ORPHAN_CREATED_WITHIN_MS = 15_000
const REFUSED_FOR_MS = 60_000
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
  /** Bytes that each report has yet to count. */
  readonly uncounted: Map<ObjectKey, bigint>
  /** Decreases attributed to this volume while it was not known to be created. */
  readonly attributed: Map<ObjectKey, bigint>
}

export class Reservations {
  readonly #options: ReservationOptions
  readonly #byClaim = new Map<ObjectKey, Reservation>()
  readonly #byReport = new Map<ObjectKey, Set<Reservation>>()
  readonly #attributedByReport = new Map<ObjectKey, Set<Reservation>>()
  readonly #refusals = new Map<ObjectKey, { driver: string; endsAtMs: number }>()
  #isStopped = false
  #cancelSweep: (() => void) | undefined
  #sweepAtMs = Number.POSITIVE_INFINITY

  constructor(options: ReservationOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#byClaim.size
  }

  /** Bytes of a report that are reserved for claims other than these. */
  reservedForOthers({ key, ledger: { reserved } }: CapacityReport, own: readonly ObjectKey[]): bigint {
    if (reserved === 0n) return reserved
    let others = reserved
    for (const claim of own) others -= this.#byClaim.get(claim)?.uncounted.get(key) ?? 0n
    return others
  }

  stateOf(claimKey: ObjectKey): Reservation['state'] | undefined {
    return this.#byClaim.get(claimKey)?.state
  }

  /** The scheduler decided to provision the volume, and has written nothing yet. */
  assume(requested: RequestedVolume): void {
    if (this.#byClaim.get(requested.claimKey)?.claimUid === requested.claimUid) return // known from an earlier attempt
    this.#add(requested, 'assumed', Number.POSITIVE_INFINITY)
  }

  /** The claim has its selected node: the provisioner creates the volume. False if the claim has no reservation. */
  nodeSelected(claimKey: ObjectKey, claimUid: string): boolean {
    const known = this.#byClaim.get(claimKey)
    if (known?.claimUid !== claimUid) return false
    if (known.state !== 'assumed') return true
    known.state = 'requested'
    known.endsAtMs = this.#now() + this.#createdWithinMs
    this.#sweepBy(known.endsAtMs)
    return true
  }

  /** Reserves for a claim whose node was selected by another scheduler, a user, or an earlier run of this process. */
  adopt(requested: RequestedVolume): void {
    this.#add(requested, 'requested', this.#now() + this.#createdWithinMs)
  }

  /** The claim is bound to its volume, which reports may have yet to count. */
  volumeCreated(claimKey: ObjectKey, claimUid: string): void {
    const known = this.#byClaim.get(claimKey)
    if (!known || known.claimUid !== claimUid || known.state === 'created') return
    this.#markCreated(known)
  }

  /** The attempt ended before a node was selected. */
  release(claimKey: ObjectKey): void {
    const known = this.#byClaim.get(claimKey)
    if (known?.state === 'assumed') this.#end(known)
  }

  /** The volume cannot be created on the selected node. */
  provisioningFailed(claimKey: ObjectKey, claimUid: string): void {
    const known = this.#byClaim.get(claimKey)
    if (!known || known.claimUid !== claimUid || known.state !== 'requested') return
    this.#recordRefusal(known.ownReport, known)
    this.#end(known)
  }

  /** The driver created the volume in another place, which counts as a refusal of the requested one. */
  createdElsewhere(requested: RequestedVolume): void {
    this.#recordRefusal(requested.report.key, requested)
    const known = this.#byClaim.get(requested.claimKey)
    if (known?.claimUid === requested.claimUid) this.#end(known)
  }

  /** The claim was deleted. Its volume may still be created, and deleted afterwards. */
  claimDeleted(claimKey: ObjectKey): void {
    const known = this.#byClaim.get(claimKey)
    if (!known || known.state === 'created') return
    if (known.state === 'assumed') {
      this.#end(known)
      return
    }
    this.#markCreated(known)
    this.#endsBy(known, this.#options.orphanCreatedWithinMs ?? ORPHAN_CREATED_WITHIN_MS)
  }

  /** The volume was deleted: reports no longer have to count it. */
  volumeDeleted(claimKey: ObjectKey, claimUid: string): void {
    const known = this.#byClaim.get(claimKey)
    if (known?.claimUid === claimUid && known.state === 'created') this.#end(known)
  }

  /** A report was added or changed; `before` is its previous version. */
  reportChanged(now: CapacityReport, before: CapacityReport | undefined): void {
    this.#dropRefusal(now.key)
    if (!before) this.#reserveFromNew(now)
    else if (before.capacityBytes !== undefined && now.capacityBytes !== undefined) {
      this.#attribute(now.key, before.capacityBytes - now.capacityBytes)
    }
  }

  /** The report was deleted, with all volumes that it had not counted. */
  reportDeleted(report: ObjectKey): void {
    this.#refusals.delete(report)
    for (const reservation of this.#byReport.get(report) ?? []) reservation.uncounted.delete(report)
    for (const reservation of this.#attributedByReport.get(report) ?? []) reservation.attributed.delete(report)
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

  #add(requested: RequestedVolume, state: 'assumed' | 'requested', endsAtMs: number): void {
    const known = this.#byClaim.get(requested.claimKey)
    if (known) this.#end(known)
    const { index, driverOf } = this.#options
    const { report, driver, bytes, claimUid, claimKey } = requested
    const uncounted = new Map<ObjectKey, bigint>()
    for (const one of index.inSegment(report.segment)) {
      const isOfDriver = one.key === report.key || driverOf(one.className) === driver
      if (isOfDriver) uncounted.set(one.key, reservedBytes(one, report, bytes))
    }
    const reservation: Reservation = {
      claimKey,
      claimUid,
      driver,
      bytes,
      ownReport: report.key,
      state,
      endsAtMs,
      uncounted,
      attributed: new Map(),
    }
    this.#byClaim.set(claimKey, reservation)
    for (const [key, amount] of uncounted) this.#reserve(key, reservation, amount)
    this.#sweepBy(endsAtMs)
  }

  #reserve(report: ObjectKey, reservation: Reservation, amount: bigint): void {
    const ledger = this.#options.index.get(report)?.ledger
    if (ledger) ledger.reserved += amount
    getOrCreate(this.#byReport, report, () => new Set()).add(reservation)
  }

  #unreserve(report: ObjectKey, reservation: Reservation, amount: bigint): void {
    const uncounted = reservation.uncounted.get(report) ?? 0n
    const ledger = this.#options.index.get(report)?.ledger
    if (ledger) ledger.reserved -= amount
    if (uncounted > amount) {
      reservation.uncounted.set(report, uncounted - amount)
      return
    }
    reservation.uncounted.delete(report)
    const holders = this.#byReport.get(report)
    holders?.delete(reservation)
    if (holders?.size === 0) this.#byReport.delete(report)
  }

  /**
   * The first report of a class may be older than it looks, so volumes that are already created are subtracted from it,
   * too: until their own class has counted them and the time for other classes has passed.
   */
  #reserveFromNew(report: CapacityReport): void {
    const { index, driverOf } = this.#options
    const driver = driverOf(report.className)
    const others = new Set<Reservation>()
    for (const one of index.inSegment(report.segment)) {
      for (const reservation of this.#byReport.get(one.key) ?? []) others.add(reservation)
    }
    for (const reservation of others) {
      if (reservation.driver !== driver || reservation.uncounted.has(report.key)) continue
      const own = index.get(reservation.ownReport)
      const amount = own ? reservedBytes(report, own, reservation.bytes) : reservation.bytes
      reservation.uncounted.set(report.key, amount)
      this.#reserve(report.key, reservation, amount)
    }
  }

  #attribute(report: ObjectKey, decrease: bigint): void {
    const holders = this.#byReport.get(report)
    if (!holders || decrease <= 0n) return
    let left = decrease
    for (const state of ['created', 'requested'] as const) {
      for (const reservation of [...holders]) {
        if (left === 0n) return
        if (reservation.state !== state) continue
        const amount = smaller(left, reservation.uncounted.get(report) ?? 0n)
        left -= amount
        this.#unreserve(report, reservation, amount)
        if (state === 'requested') this.#recordAttribution(report, reservation, amount)
        if (reservation.state === 'created' && !reservation.uncounted.has(report)) this.#counted(reservation, report)
      }
    }
  }

  #recordAttribution(report: ObjectKey, reservation: Reservation, amount: bigint): void {
    reservation.attributed.set(report, (reservation.attributed.get(report) ?? 0n) + amount)
    getOrCreate(this.#attributedByReport, report, () => new Set()).add(reservation)
  }

  /** Decreases attributed to volumes that are not created yet belong to this one; the others are reserved for again. */
  #takeOverAttributions(reservation: Reservation): void {
    for (const [report, missing] of [...reservation.uncounted]) {
      let left = missing
      for (const other of [...(this.#attributedByReport.get(report) ?? [])]) {
        const amount = smaller(left, other.attributed.get(report) ?? 0n)
        if (amount === 0n) break
        left -= amount
        this.#undoAttribution(report, other, amount)
        this.#unreserve(report, reservation, amount)
        other.uncounted.set(report, (other.uncounted.get(report) ?? 0n) + amount)
        this.#reserve(report, other, amount)
      }
    }
  }

  #undoAttribution(report: ObjectKey, reservation: Reservation, amount: bigint): void {
    const attributed = reservation.attributed.get(report) ?? 0n
    if (attributed > amount) {
      reservation.attributed.set(report, attributed - amount)
      return
    }
    reservation.attributed.delete(report)
    const others = this.#attributedByReport.get(report)
    others?.delete(reservation)
    if (others?.size === 0) this.#attributedByReport.delete(report)
  }

  #dropAttributions(reservation: Reservation): void {
    for (const [report, amount] of [...reservation.attributed]) this.#undoAttribution(report, reservation, amount)
  }

  #counted(reservation: Reservation, report: ObjectKey): void {
    if (reservation.uncounted.size === 0) this.#byClaim.delete(reservation.claimKey)
    else if (reservation.ownReport === report) this.#endsBy(reservation, this.#othersCountWithinMs)
  }

  #markCreated(reservation: Reservation): void {
    reservation.state = 'created'
    reservation.endsAtMs = Number.POSITIVE_INFINITY
    this.#dropAttributions(reservation)
    this.#takeOverAttributions(reservation)
    if (reservation.uncounted.size === 0) this.#byClaim.delete(reservation.claimKey)
    else if (reservation.uncounted.has(reservation.ownReport)) {
      this.#endsBy(reservation, this.#options.reportedWithinMs ?? REPORTED_WITHIN_MS)
    } else this.#endsBy(reservation, this.#othersCountWithinMs)
  }

  get #createdWithinMs(): number {
    return this.#options.createdWithinMs ?? CREATED_WITHIN_MS
  }

  get #othersCountWithinMs(): number {
    return this.#options.othersCountWithinMs ?? OTHERS_COUNT_WITHIN_MS
  }

  #endsBy(reservation: Reservation, withinMs: number): void {
    reservation.endsAtMs = Math.min(reservation.endsAtMs, this.#now() + withinMs)
    this.#sweepBy(reservation.endsAtMs)
  }

  #end(reservation: Reservation): void {
    this.#byClaim.delete(reservation.claimKey)
    this.#dropAttributions(reservation)
    const freed = reservation.uncounted.size > 0
    for (const [report, amount] of [...reservation.uncounted]) this.#unreserve(report, reservation, amount)
    if (freed) this.#options.onFreed(reservation.driver)
  }

  #recordRefusal(report: ObjectKey, { driver, bytes }: Pick<RequestedVolume, 'driver' | 'bytes'>): void {
    const ledger = this.#options.index.get(report)?.ledger
    if (!ledger) return
    ledger.refused = smaller(bytes, ledger.refused ?? bytes)
    const endsAtMs = this.#now() + (this.#options.refusedForMs ?? REFUSED_FOR_MS)
    this.#refusals.set(report, { driver, endsAtMs })
    this.#sweepBy(endsAtMs)
  }

  #dropRefusal(report: ObjectKey): void {
    const refusal = this.#refusals.get(report)
    if (!refusal) return
    this.#refusals.delete(report)
    const ledger = this.#options.index.get(report)?.ledger
    if (ledger) ledger.refused = undefined
    this.#options.onFreed(refusal.driver)
  }

  #sweepBy(atMs: number): void {
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
    for (const [report, { endsAtMs }] of [...this.#refusals]) {
      if (endsAtMs <= nowMs) this.#dropRefusal(report)
      else nextMs = Math.min(nextMs, endsAtMs)
    }
    this.#sweepBy(nextMs)
  }
}

/**
 * The bytes that a volume fitted by the report `own` takes from `other`; never less than its size. That may be too much,
 * but only until the reports have counted the volume.
 */
export function reservedBytes(other: CapacityReport, own: CapacityReport, bytes: bigint): bigint {
  const share = shareOf(other, own, bytes)
  return share > bytes ? share : bytes
}

/** The same share of `other` as the volume is of `own`. */
export function shareOf(other: CapacityReport, own: CapacityReport, bytes: bigint): bigint {
  const [theirs, ours] = [other.capacityBytes, own.capacityBytes]
  if (other.key === own.key || theirs === undefined || ours === undefined || ours <= 0n) return bytes
  return (bytes * theirs + ours - 1n) / ours
}

export const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b)
