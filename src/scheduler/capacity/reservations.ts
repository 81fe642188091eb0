// Capacity that is spoken for. A report says what was free when it was made; volumes promised since then, or made but
// not yet seen by it, are held back here, so that a burst of pods does not promise the same bytes twice.
//
// Decisions:
// - Held back is only from `capacity`, never from `maximumVolumeSize`: that is about a single volume.
// - Classes of one driver may share a pool, and nobody says which do. So a volume is held back from the reports of every
//   class of its driver about the same nodes, in proportion to what they report: where mirrored shows half of striped,
//   a mirrored volume takes twice its size from striped.
// - A report has counted a volume when it went down by the volume's size. Anything else would trust reports to be
//   prompt: one that was under way while the volume was made, or a driver that reports late, must not free its bytes.
//   What goes down counts for the volumes that were made first, then for those that may have been made unseen. When one
//   of the others turns out to be made after all, it was that one that the report counted.
// - Once the report of its own class has counted a volume, the others are given `othersCountWithinMs`: those that have
//   not gone down by then are of another pool.
// - Volumes that no report ever counts (thin ones) stop being held back after `reportedWithinMs`; those that are asked
//   for and never made, after `madeWithinMs`, or `orphanMadeWithinMs` after their claim is gone.
// - A volume that is deleted is held back no longer. Short-lived pods come and go between two reports, and none of those
//   ever shows their volumes.
//
//   assumed ──asked──→ asked ──made──→ made ──counted, deleted or in time──→ gone
//      └─ given up ──→ gone   └─ failed, or made elsewhere ──→ gone, and the driver's no is remembered for a while

import type { Clock } from '../../base/clock.ts'
import type { ObjectKey } from '../../client/index.ts'
import { getOrMake } from '../get-or-make.ts'
import type { CapacityIndex } from './capacity-index.ts'
import type { CapacityReport } from './capacity-report.ts'

export interface ReservationOptions {
  readonly index: CapacityIndex
  readonly clock: Clock
  /** The provisioner a class names; undefined when the class is not there. */
  readonly driverOf: (className: string) => string | undefined
  /** Capacity of this driver was freed without any report saying so. */
  readonly onFreed: (driver: string) => void
  readonly reportedWithinMs?: number
  readonly othersCountWithinMs?: number
  readonly madeWithinMs?: number
  readonly orphanMadeWithinMs?: number
  readonly refusedForMs?: number
}

export interface WantedVolume {
  readonly claimKey: ObjectKey
  readonly claimUid: string
  readonly driver: string
  readonly bytes: bigint
  /** The report by which it was judged to fit. */
  readonly report: CapacityReport
}

/** Two of the producer's usual polls. */
const REPORTED_WITHIN_MS = 120_000
const OTHERS_COUNT_WITHIN_MS = 10_000
const MADE_WITHIN_MS = 900_000
/** A call of the driver, and a little for the volume to be told of. */
const ORPHAN_MADE_WITHIN_MS = 15_000
const REFUSED_FOR_MS = 60_000
const SWEEP_MS_MIN = 1_000

interface Reservation {
  readonly claimKey: ObjectKey
  readonly claimUid: string
  readonly driver: string
  readonly bytes: bigint
  readonly ownReport: ObjectKey
  state: 'assumed' | 'asked' | 'made'
  /** By the monotonic clock. */
  endsAtMs: number
  /** What each report has yet to count. */
  readonly held: Map<ObjectKey, bigint>
  /** What reports have counted while it was not known to be made: a guess. */
  readonly guessed: Map<ObjectKey, bigint>
}

export class Reservations {
  readonly #options: ReservationOptions
  readonly #byClaim = new Map<ObjectKey, Reservation>()
  readonly #byReport = new Map<ObjectKey, Set<Reservation>>()
  readonly #guessedByReport = new Map<ObjectKey, Set<Reservation>>()
  readonly #refusals = new Map<ObjectKey, { driver: string; endsAtMs: number }>()
  #cancelSweep: (() => void) | undefined
  #sweepAtMs = Number.POSITIVE_INFINITY

  constructor(options: ReservationOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#byClaim.size
  }

  /** Bytes of a report that are spoken for by claims other than these. */
  heldBack({ key, ledger: { held } }: CapacityReport, except: readonly ObjectKey[]): bigint {
    if (held === 0n) return held
    let others = held
    for (const claim of except) others -= this.#byClaim.get(claim)?.held.get(key) ?? 0n
    return others
  }

  stateOf(claimKey: ObjectKey): Reservation['state'] | undefined {
    return this.#byClaim.get(claimKey)?.state
  }

  /** The volume is wanted; nobody has been asked for it yet. */
  assume(wanted: WantedVolume): void {
    if (this.#byClaim.get(wanted.claimKey)?.claimUid === wanted.claimUid) return // asked for already
    this.#add(wanted, 'assumed', Number.POSITIVE_INFINITY)
  }

  /** The claim's provisioner has been asked for it. False when nothing is held back for the claim yet. */
  asked(claimKey: ObjectKey, claimUid: string): boolean {
    const known = this.#byClaim.get(claimKey)
    if (known?.claimUid !== claimUid) return false
    if (known.state !== 'assumed') return true
    known.state = 'asked'
    known.endsAtMs = this.#now() + this.#madeWithinMs
    this.#sweepBy(known.endsAtMs)
    return true
  }

  /** Someone else has asked for it: another scheduler, a user, or we in an earlier life. */
  found(wanted: WantedVolume): void {
    this.#add(wanted, 'asked', this.#now() + this.#madeWithinMs)
  }

  /** The claim has its volume: what is left is that the reports count it. */
  made(claimKey: ObjectKey, claimUid: string): void {
    const known = this.#byClaim.get(claimKey)
    if (!known || known.claimUid !== claimUid || known.state === 'made') return
    this.#becomeMade(known)
  }

  /** We did not ask after all. */
  giveUp(claimKey: ObjectKey): void {
    const known = this.#byClaim.get(claimKey)
    if (known?.state === 'assumed') this.#end(known)
  }

  /** Its creation failed for good where it was asked for. */
  failed(claimKey: ObjectKey, claimUid: string): void {
    const known = this.#byClaim.get(claimKey)
    if (!known || known.claimUid !== claimUid || known.state !== 'asked') return
    this.#refuse(known.ownReport, known)
    this.#end(known)
  }

  /** It was made, and not where it was asked for: a driver that may choose has said no to that place in its own way. */
  madeElsewhere(wanted: WantedVolume): void {
    this.#refuse(wanted.report.key, wanted)
    const known = this.#byClaim.get(wanted.claimKey)
    if (known?.claimUid === wanted.claimUid) this.#end(known)
  }

  /** The claim is gone. Its volume may still be made, and then deleted; the reports will tell, or time. */
  orphaned(claimKey: ObjectKey): void {
    const known = this.#byClaim.get(claimKey)
    if (!known || known.state === 'made') return
    if (known.state === 'assumed') {
      this.#end(known)
      return
    }
    this.#becomeMade(known)
    this.#endsBy(known, this.#options.orphanMadeWithinMs ?? ORPHAN_MADE_WITHIN_MS)
  }

  /** The volume is gone again. What no report has counted, none has to. */
  deleted(claimKey: ObjectKey, claimUid: string): void {
    const known = this.#byClaim.get(claimKey)
    if (known?.claimUid === claimUid && known.state === 'made') this.#end(known)
  }

  /** Tells of a report that is new or has changed; `before` is what it said until now. */
  reported(now: CapacityReport, before: CapacityReport | undefined): void {
    this.#forgetRefusal(now.key)
    if (!before) this.#holdBackFromNew(now)
    else if (before.capacityBytes !== undefined && now.capacityBytes !== undefined) {
      this.#count(now.key, before.capacityBytes - now.capacityBytes)
    }
  }

  /** The report is gone, and whatever it had yet to count with it. */
  withdrawn(report: ObjectKey): void {
    this.#refusals.delete(report)
    for (const reservation of this.#byReport.get(report) ?? []) reservation.held.delete(report)
    for (const reservation of this.#guessedByReport.get(report) ?? []) reservation.guessed.delete(report)
    this.#byReport.delete(report)
    this.#guessedByReport.delete(report)
  }

  stop(): void {
    this.#cancelSweep?.()
  }

  #now(): number {
    return this.#options.clock.monotonicMs()
  }

  #add(wanted: WantedVolume, state: 'assumed' | 'asked', endsAtMs: number): void {
    const known = this.#byClaim.get(wanted.claimKey)
    if (known) this.#end(known)
    const { index, driverOf } = this.#options
    const { report, driver, bytes, claimUid, claimKey } = wanted
    const held = new Map<ObjectKey, bigint>()
    for (const one of index.inSegment(report.segment)) {
      const isOfDriver = one.key === report.key || driverOf(one.className) === driver
      if (isOfDriver) held.set(one.key, inTermsOf(one, report, bytes))
    }
    const reservation: Reservation = {
      claimKey,
      claimUid,
      driver,
      bytes,
      ownReport: report.key,
      state,
      endsAtMs,
      held,
      guessed: new Map(),
    }
    this.#byClaim.set(claimKey, reservation)
    for (const [key, amount] of held) this.#hold(key, reservation, amount)
    this.#sweepBy(endsAtMs)
  }

  #hold(report: ObjectKey, reservation: Reservation, amount: bigint): void {
    const ledger = this.#options.index.get(report)?.ledger
    if (ledger) ledger.held += amount
    getOrMake(this.#byReport, report, () => new Set()).add(reservation)
  }

  #letGo(report: ObjectKey, reservation: Reservation, amount: bigint): void {
    const held = reservation.held.get(report) ?? 0n
    const ledger = this.#options.index.get(report)?.ledger
    if (ledger) ledger.held -= amount
    if (held > amount) {
      reservation.held.set(report, held - amount)
      return
    }
    reservation.held.delete(report)
    const holders = this.#byReport.get(report)
    holders?.delete(reservation)
    if (holders?.size === 0) this.#byReport.delete(report)
  }

  /**
   * A class that came later. Its first report may be older than it looks, so it is held back from for volumes that are
   * made already, too: until their own class has counted them, and the grace for the others has passed.
   */
  #holdBackFromNew(report: CapacityReport): void {
    const { index, driverOf } = this.#options
    const driver = driverOf(report.className)
    const others = new Set<Reservation>()
    for (const one of index.inSegment(report.segment)) {
      for (const reservation of this.#byReport.get(one.key) ?? []) others.add(reservation)
    }
    for (const reservation of others) {
      if (reservation.driver !== driver || reservation.held.has(report.key)) continue
      const own = index.get(reservation.ownReport)
      const amount = own ? inTermsOf(report, own, reservation.bytes) : reservation.bytes
      reservation.held.set(report.key, amount)
      this.#hold(report.key, reservation, amount)
    }
  }

  #count(report: ObjectKey, wentDown: bigint): void {
    const holders = this.#byReport.get(report)
    if (!holders || wentDown <= 0n) return
    let left = wentDown
    for (const state of ['made', 'asked'] as const) {
      for (const reservation of [...holders]) {
        if (left === 0n) return
        if (reservation.state !== state) continue
        const amount = smaller(left, reservation.held.get(report) ?? 0n)
        left -= amount
        this.#letGo(report, reservation, amount)
        if (state === 'asked') this.#guess(report, reservation, amount)
        if (reservation.state === 'made' && !reservation.held.has(report)) this.#isCounted(reservation, report)
      }
    }
  }

  #guess(report: ObjectKey, reservation: Reservation, amount: bigint): void {
    reservation.guessed.set(report, (reservation.guessed.get(report) ?? 0n) + amount)
    getOrMake(this.#guessedByReport, report, () => new Set()).add(reservation)
  }

  /** What was counted for others that are not made yet is this one's; they are held back again in its place. */
  #takeOverGuesses(reservation: Reservation): void {
    for (const [report, missing] of [...reservation.held]) {
      let left = missing
      for (const other of [...(this.#guessedByReport.get(report) ?? [])]) {
        const amount = smaller(left, other.guessed.get(report) ?? 0n)
        if (amount === 0n) break
        left -= amount
        this.#unguess(report, other, amount)
        this.#letGo(report, reservation, amount)
        other.held.set(report, (other.held.get(report) ?? 0n) + amount)
        this.#hold(report, other, amount)
      }
    }
  }

  #unguess(report: ObjectKey, reservation: Reservation, amount: bigint): void {
    const guessed = reservation.guessed.get(report) ?? 0n
    if (guessed > amount) {
      reservation.guessed.set(report, guessed - amount)
      return
    }
    reservation.guessed.delete(report)
    const others = this.#guessedByReport.get(report)
    others?.delete(reservation)
    if (others?.size === 0) this.#guessedByReport.delete(report)
  }

  #forgetGuesses(reservation: Reservation): void {
    for (const [report, amount] of [...reservation.guessed]) this.#unguess(report, reservation, amount)
  }

  #isCounted(reservation: Reservation, report: ObjectKey): void {
    if (reservation.held.size === 0) this.#byClaim.delete(reservation.claimKey)
    else if (reservation.ownReport === report) this.#endsBy(reservation, this.#othersCountWithinMs)
  }

  #becomeMade(reservation: Reservation): void {
    reservation.state = 'made'
    reservation.endsAtMs = Number.POSITIVE_INFINITY
    this.#forgetGuesses(reservation)
    this.#takeOverGuesses(reservation)
    if (reservation.held.size === 0) this.#byClaim.delete(reservation.claimKey)
    else if (reservation.held.has(reservation.ownReport)) {
      this.#endsBy(reservation, this.#options.reportedWithinMs ?? REPORTED_WITHIN_MS)
    } else this.#endsBy(reservation, this.#othersCountWithinMs)
  }

  get #madeWithinMs(): number {
    return this.#options.madeWithinMs ?? MADE_WITHIN_MS
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
    this.#forgetGuesses(reservation)
    const freed = reservation.held.size > 0
    for (const [report, amount] of [...reservation.held]) this.#letGo(report, reservation, amount)
    if (freed) this.#options.onFreed(reservation.driver)
  }

  #refuse(report: ObjectKey, { driver, bytes }: Pick<WantedVolume, 'driver' | 'bytes'>): void {
    const ledger = this.#options.index.get(report)?.ledger
    if (!ledger) return
    ledger.refused = smaller(bytes, ledger.refused ?? bytes)
    const endsAtMs = this.#now() + (this.#options.refusedForMs ?? REFUSED_FOR_MS)
    this.#refusals.set(report, { driver, endsAtMs })
    this.#sweepBy(endsAtMs)
  }

  #forgetRefusal(report: ObjectKey): void {
    const refusal = this.#refusals.get(report)
    if (!refusal) return
    this.#refusals.delete(report)
    const ledger = this.#options.index.get(report)?.ledger
    if (ledger) ledger.refused = undefined
    this.#options.onFreed(refusal.driver)
  }

  #sweepBy(atMs: number): void {
    if (atMs === Number.POSITIVE_INFINITY || atMs >= this.#sweepAtMs) return
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
      if (endsAtMs <= nowMs) this.#forgetRefusal(report)
      else nextMs = Math.min(nextMs, endsAtMs)
    }
    this.#sweepBy(nextMs)
  }
}

/**
 * What a volume of `bytes`, judged by `own`, takes from what `other` reports; never less than its size. Too much is held
 * back where a volume costs less there, but only until the reports have counted it.
 */
export function inTermsOf(other: CapacityReport, own: CapacityReport, bytes: bigint): bigint {
  const share = shareOf(other, own, bytes)
  return share > bytes ? share : bytes
}

/** The same share of what `other` reports as the volume is of what `own` does. */
export function shareOf(other: CapacityReport, own: CapacityReport, bytes: bigint): bigint {
  const [theirs, ours] = [other.capacityBytes, own.capacityBytes]
  if (other.key === own.key || theirs === undefined || ours === undefined || ours <= 0n) return bytes
  return (bytes * theirs + ours - 1n) / ours
}

export const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b)
