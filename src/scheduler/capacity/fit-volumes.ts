// Whether the volumes a pod needs made would fit where a node is, and by which report. With reservations, all volumes of
// the pod are judged together and what is promised to others is held back; without, each is judged alone by what the
// report says, as the design document has it.
import { formatQuantity, quantityFromBytes } from '../../api/quantity.ts'
import type { ObjectKey } from '../../client/index.ts'
import type { CapacityIndex } from './capacity-index.ts'
import type { CapacityReport } from './capacity-report.ts'
import { type Reservations, shareOf, smaller } from './reservations.ts'

export interface Demand {
  readonly claimKey: ObjectKey
  readonly className: string
  readonly driver: string
  readonly bytes: bigint
}

export interface CapacityFacts {
  readonly index: CapacityIndex
  /** Absent: reports are taken at their word. */
  readonly reservations: Reservations | undefined
  /** Judges a pod's volumes together also without reservations. */
  readonly isTogether?: boolean
}

type Labels = Readonly<Record<string, string>>
/** The report for each demand, in their order. */
export type Fit = readonly CapacityReport[]

/** Judges node after node for one pod; nodes that share a segment are judged once. */
export class VolumeFitter {
  readonly #facts: CapacityFacts
  readonly #demands: readonly Demand[]
  readonly #own: readonly ObjectKey[]
  readonly #verdicts = new Map<readonly CapacityReport[], Fit | undefined>()
  #mostFree: { demand: Demand; bytes: bigint; besides: number; promised: bigint } | undefined
  #unreported: Demand | undefined

  constructor(facts: CapacityFacts, demands: readonly Demand[]) {
    this.#facts = facts
    this.#demands = demands
    this.#own = demands.map(({ claimKey }) => claimKey)
  }

  fit(labels: Labels): Fit | undefined {
    const [first] = this.#demands
    if (!first) return []
    const found = this.#facts.index.find(first.className, labels)
    // Where each node has a report of its own, there is nothing to remember; where demands differ, nothing to find it by.
    if (this.#demands.length > 1 || found.length <= 1) return this.#judge(labels, found)
    if (this.#verdicts.has(found)) return this.#verdicts.get(found)
    const fit = this.#judge(labels, found)
    this.#verdicts.set(found, fit)
    return fit
  }

  /** What was missing, after nodes have been refused. */
  shortage(): string | undefined {
    const most = this.#mostFree
    if (most) {
      const { demand, bytes, besides, promised } = most
      const amount = bytes > 0n ? `at most ${shown(bytes)}` : 'nothing'
      const free = besides === 0 ? 'free on any of the nodes' : `left on any of the nodes ${besidesText(besides)}`
      const held = promised > 0n ? ` (${shown(promised)} there is promised to other volumes)` : ''
      return `A volume of ${shown(demand.bytes)} of class "${demand.className}" is asked for, and ${amount} is ${free}${held}.`
    }
    if (!this.#unreported) return undefined
    return `No capacity is reported on any of the nodes for class "${this.#unreported.className}".`
  }

  #judge(labels: Labels, ofFirst: readonly CapacityReport[]): Fit | undefined {
    const chosen: CapacityReport[] = []
    for (const [nth, demand] of this.#demands.entries()) {
      const reports = nth === 0 ? ofFirst : this.#facts.index.find(demand.className, labels)
      const best = this.#roomiest(demand, reports, chosen)
      if (!best) return undefined
      chosen.push(best)
    }
    return chosen
  }

  /** Where reports overlap: the one with most room, then the first by name, so that it is the same every time. */
  #roomiest(demand: Demand, reports: readonly CapacityReport[], chosen: readonly CapacityReport[]) {
    let best: CapacityReport | undefined
    let bestRoom = -1n
    for (const report of reports) {
      const room = this.#room(report, demand, chosen)
      if (room === undefined) continue
      this.#noteRoom(demand, room, chosen.length, report)
      if (room < demand.bytes) continue
      if (!best || room > bestRoom || (room === bestRoom && report.key < best.key)) {
        best = report
        bestRoom = room
      }
    }
    if (reports.length === 0) this.#unreported ??= demand
    return best
  }

  /** The largest volume that can be promised now; undefined when that is not known. */
  #room(report: CapacityReport, { bytes, driver }: Demand, chosen: readonly CapacityReport[]): bigint | undefined {
    const { reservations, isTogether } = this.#facts
    const { limitBytes, capacityBytes, maximumBytes, ledger } = report
    if (limitBytes === undefined) return undefined
    if (!reservations && !isTogether) return limitBytes
    if (ledger.refused !== undefined && bytes >= ledger.refused) return 0n
    // A driver that allows a volume larger than what is free makes promises of its own; there is nothing to count.
    const isCounted = capacityBytes !== undefined && (maximumBytes === undefined || capacityBytes >= maximumBytes)
    if (!isCounted) return limitBytes
    let free = capacityBytes - (reservations?.heldBack(report, this.#own) ?? 0n)
    for (const [nth, other] of chosen.entries()) {
      const taken = this.#demands[nth]!
      const isSharing = other.segment === report.segment && taken.driver === driver
      // Exactly its share: held to more than that, a pod that just fits would wait for ever.
      if (isSharing) free -= shareOf(report, other, taken.bytes)
    }
    return smaller(free, limitBytes)
  }

  #noteRoom(demand: Demand, bytes: bigint, besides: number, report: CapacityReport): void {
    if (bytes >= demand.bytes || (this.#mostFree && bytes <= this.#mostFree.bytes)) return
    const isByPromises = bytes < (report.limitBytes ?? 0n)
    const promised = isByPromises ? (this.#facts.reservations?.heldBack(report, this.#own) ?? 0n) : 0n
    this.#mostFree = { demand, bytes, besides, promised }
  }
}

const besidesText = (volumes: number): string =>
  volumes === 1 ? 'beside another volume of the pod' : `beside ${volumes} other volumes of the pod`

const shown = (bytes: bigint): string => formatQuantity(quantityFromBytes(bytes))
