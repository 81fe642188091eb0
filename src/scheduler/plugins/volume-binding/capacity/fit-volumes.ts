// Whether the volumes to provision for a pod fit on a node, and by which capacity report. With reservations, all volumes of
// the pod are fitted together and bytes reserved for others are subtracted; without, each is compared with its report
// alone, as in KEP-1472.
import { formatQuantity, quantityFromBytes } from '../../../../api/quantity.ts'
import type { ObjectKey } from '../../../../client/index.ts'
import type { CapacityIndex } from './capacity-index.ts'
import type { CapacityReport } from './capacity-report.ts'
import { type Reservations, shareOf, smaller } from './reservations.ts'

export interface VolumeRequest {
  readonly claimKey: ObjectKey
  readonly className: string
  readonly driver: string
  readonly bytes: bigint
}

export interface CapacityDeps {
  readonly index: CapacityIndex
  /** Undefined: only what the reports say counts. */
  readonly reservations: Reservations | undefined
  /** Fits a pod's volumes together also without reservations. */
  readonly fitsTogether?: boolean
}

type Labels = Readonly<Record<string, string>>
/** One report per request, in the same order. */
export type Fit = readonly CapacityReport[]

/** Fits the volumes of one pod on node after node. For a single volume, nodes that share their reports are fitted once. */
export class VolumeFitter {
  readonly #deps: CapacityDeps
  readonly #requests: readonly VolumeRequest[]
  readonly #own: readonly ObjectKey[]
  readonly #cached = new Map<readonly CapacityReport[], Fit | undefined>()
  #largestRoom: { request: VolumeRequest; bytes: bigint; besides: number; reserved: bigint } | undefined
  #withoutReport: VolumeRequest | undefined

  constructor(deps: CapacityDeps, requests: readonly VolumeRequest[]) {
    this.#deps = deps
    this.#requests = requests
    this.#own = requests.map(({ claimKey }) => claimKey)
  }

  fit(labels: Labels): Fit | undefined {
    const [first] = this.#requests
    if (!first) return []
    const found = this.#deps.index.find(first.className, labels)
    // With one report per node there is nothing to share; with several requests there is no key to cache by.
    if (this.#requests.length > 1 || found.length <= 1) return this.#compute(labels, found)
    if (this.#cached.has(found)) return this.#cached.get(found)
    const fit = this.#compute(labels, found)
    this.#cached.set(found, fit)
    return fit
  }

  /** How much is missing, after nodes have been rejected. */
  shortage(): string | undefined {
    const room = this.#largestRoom
    if (room) {
      const { request, bytes, besides, reserved } = room
      const amount = bytes > 0n ? `at most ${formatted(bytes)} is` : 'no capacity is'
      const where = besides === 0 ? 'free on any node' : `left on any node ${besidesText(besides)}`
      const note = reserved > 0n ? ` (${formatted(reserved)} is reserved for other volumes there)` : ''
      return `A volume of ${formatted(request.bytes)} of class "${request.className}" is requested, but ${amount} ${where}${note}.`
    }
    if (!this.#withoutReport) return undefined
    return `No capacity is reported for class "${this.#withoutReport.className}" on any node.`
  }

  #compute(labels: Labels, ofFirst: readonly CapacityReport[]): Fit | undefined {
    const chosen: CapacityReport[] = []
    for (const [nth, request] of this.#requests.entries()) {
      const reports = nth === 0 ? ofFirst : this.#deps.index.find(request.className, labels)
      const best = this.#roomiest(request, reports, chosen)
      if (!best) return undefined
      chosen.push(best)
    }
    return chosen
  }

  /** If reports overlap: the one with the most room, then the first by name, so that the choice is deterministic. */
  #roomiest(request: VolumeRequest, reports: readonly CapacityReport[], chosen: readonly CapacityReport[]) {
    let best: CapacityReport | undefined
    let bestRoom = -1n
    for (const report of reports) {
      const room = this.#room(report, request, chosen)
      if (room === undefined) continue
      this.#recordRoom(request, room, chosen.length, report)
      if (room < request.bytes) continue
      if (!best || room > bestRoom || (room === bestRoom && report.key < best.key)) {
        best = report
        bestRoom = room
      }
    }
    if (reports.length === 0) this.#withoutReport ??= request
    return best
  }

  /** The largest volume that fits now; undefined if that is not known. */
  #room(
    report: CapacityReport,
    { bytes, driver }: VolumeRequest,
    chosen: readonly CapacityReport[],
  ): bigint | undefined {
    const { reservations, fitsTogether } = this.#deps
    const { limitBytes, capacityBytes, maximumBytes, ledger } = report
    if (limitBytes === undefined) return undefined
    if (!reservations && !fitsTogether) return limitBytes
    if (ledger.refused !== undefined && bytes >= ledger.refused) return 0n
    // A driver that allows a volume larger than its free capacity overcommits: reservations are not subtracted.
    const isCounted = capacityBytes !== undefined && (maximumBytes === undefined || capacityBytes >= maximumBytes)
    if (!isCounted) return limitBytes
    let free = capacityBytes - (reservations?.reservedForOthers(report, this.#own) ?? 0n)
    for (const [nth, other] of chosen.entries()) {
      const taken = this.#requests[nth]!
      const isSharing = other.segment === report.segment && taken.driver === driver
      // Exactly its share: with more than that, a pod that just fits would never be scheduled.
      if (isSharing) free -= shareOf(report, other, taken.bytes)
    }
    return smaller(free, limitBytes)
  }

  #recordRoom(request: VolumeRequest, bytes: bigint, besides: number, report: CapacityReport): void {
    if (bytes >= request.bytes || (this.#largestRoom && bytes <= this.#largestRoom.bytes)) return
    const isReduced = bytes < (report.limitBytes ?? 0n)
    const reserved = isReduced ? (this.#deps.reservations?.reservedForOthers(report, this.#own) ?? 0n) : 0n
    this.#largestRoom = { request, bytes, besides, reserved }
  }
}

const besidesText = (volumes: number): string =>
  volumes === 1 ? 'beside another volume of the pod' : `beside ${volumes} other volumes of the pod`

const formatted = (bytes: bigint): string => formatQuantity(quantityFromBytes(bytes))
