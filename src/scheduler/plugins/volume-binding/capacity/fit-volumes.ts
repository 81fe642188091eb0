// Decides whether the volumes to provision for a pod fit on a node, and selects a capacity report for each. With
// reservations, volumes of the pod are added up and bytes reserved for other volumes are subtracted. Without reservations,
// each volume is compared with its report separately, as in KEP-1472.
import { formatQuantity, quantityFromBytes } from '../../../../api/quantity.ts'
import type { ObjectKey } from '../../../../client/index.ts'
import type { CapacityIndex } from './capacity-index.ts'
import type { CapacityReport } from './capacity-report.ts'
import { minBytes, type Reservations, shareOf } from './reservations.ts'

export interface VolumeRequest {
  readonly claimKey: ObjectKey
  readonly className: string
  readonly driver: string
  readonly bytes: bigint
}

export interface CapacityDeps {
  readonly index: CapacityIndex
  /** Undefined if reservations are disabled. */
  readonly reservations: Reservations | undefined
  /** Whether to add up the volumes of the pod even without reservations. */
  readonly mustFitTogether?: boolean
}

type Labels = Readonly<Record<string, string>>
/** One report per request, in the same order. */
export type Fit = readonly CapacityReport[]

/** A volume that does not fit on a node. */
export interface Shortage {
  readonly request: VolumeRequest
  /** The number of reports of the class about the node. */
  readonly reportCount: number
  /** The report with the most free capacity, or undefined if no report has a known capacity. */
  readonly bestReport:
    | { readonly report: CapacityReport; readonly freeBytes: bigint; readonly reservedBytes: bigint }
    | undefined
  /** The number of volumes of the same pod that were fitted before. */
  readonly otherVolumeCount: number
}

/** Fits the volumes of one pod on each node. For a single volume, the result is cached for nodes with the same reports. */
export class VolumeFitter {
  readonly #deps: CapacityDeps
  readonly #requests: readonly VolumeRequest[]
  readonly #claimKeys: readonly ObjectKey[]
  readonly #cache = new Map<readonly CapacityReport[], Fit | undefined>()
  #largestFree: { request: VolumeRequest; bytes: bigint; otherVolumeCount: number; reservedBytes: bigint } | undefined
  #requestWithoutReport: VolumeRequest | undefined

  constructor(deps: CapacityDeps, requests: readonly VolumeRequest[]) {
    this.#deps = deps
    this.#requests = requests
    this.#claimKeys = requests.map(({ claimKey }) => claimKey)
  }

  fit(labels: Labels): Fit | undefined {
    const [first] = this.#requests
    if (!first) return []
    const firstReports = this.#deps.index.find(first.className, labels)
    // Cache only if several nodes can share the result: a single report is usually about one node.
    if (this.#requests.length > 1 || firstReports.length <= 1) return this.#compute(labels, firstReports)
    if (this.#cache.has(firstReports)) return this.#cache.get(firstReports)
    const fit = this.#compute(labels, firstReports)
    this.#cache.set(firstReports, fit)
    return fit
  }

  /** Describes, after all nodes were rejected, which volume does not fit and the most capacity that is free for it. */
  describeShortage(): string | undefined {
    if (this.#largestFree) {
      const { request, bytes, otherVolumeCount, reservedBytes } = this.#largestFree
      const amount = bytes > 0n ? `at most ${formatBytes(bytes)} is` : 'no capacity is'
      const location =
        otherVolumeCount === 0 ? 'free on any node' : `left on any node ${describeOtherVolumes(otherVolumeCount)}`
      const note = reservedBytes > 0n ? ` (${formatBytes(reservedBytes)} is reserved for other volumes there)` : ''
      return `A volume of ${formatBytes(request.bytes)} of class "${request.className}" is requested, but ${amount} ${location}${note}.`
    }
    if (!this.#requestWithoutReport) return undefined
    return `No capacity is reported for class "${this.#requestWithoutReport.className}" on any node.`
  }

  /** Returns the first volume that does not fit on a node with these labels, or undefined if all fit. */
  findShortage(labels: Labels): Shortage | undefined {
    const selectedReports: CapacityReport[] = []
    for (const request of this.#requests) {
      const reports = this.#deps.index.find(request.className, labels)
      const selectedReport = this.#selectReport(request, reports, selectedReports)
      if (!selectedReport) return this.#shortageOf(request, reports, selectedReports)
      selectedReports.push(selectedReport)
    }
    return undefined
  }

  #shortageOf(
    request: VolumeRequest,
    reports: readonly CapacityReport[],
    selectedReports: readonly CapacityReport[],
  ): Shortage {
    let bestReport: Shortage['bestReport']
    for (const report of reports) {
      const freeBytes = this.#freeBytes(report, request, selectedReports)
      if (freeBytes === undefined || (bestReport && freeBytes <= bestReport.freeBytes)) continue
      const reservedBytes = this.#deps.reservations?.reservedForOthers(report, this.#claimKeys) ?? 0n
      bestReport = { report, freeBytes, reservedBytes }
    }
    return { request, reportCount: reports.length, bestReport, otherVolumeCount: selectedReports.length }
  }

  #compute(labels: Labels, firstReports: readonly CapacityReport[]): Fit | undefined {
    const selectedReports: CapacityReport[] = []
    for (const [position, request] of this.#requests.entries()) {
      const reports = position === 0 ? firstReports : this.#deps.index.find(request.className, labels)
      const selectedReport = this.#selectReport(request, reports, selectedReports)
      if (!selectedReport) return undefined
      selectedReports.push(selectedReport)
    }
    return selectedReports
  }

  /** Returns the report with the most free capacity, or the first of them by name, so that the choice is deterministic. */
  #selectReport(
    request: VolumeRequest,
    reports: readonly CapacityReport[],
    selectedReports: readonly CapacityReport[],
  ) {
    let selectedReport: CapacityReport | undefined
    let selectedFreeBytes = -1n
    for (const report of reports) {
      const freeBytes = this.#freeBytes(report, request, selectedReports)
      if (freeBytes === undefined) continue
      this.#recordFree(request, freeBytes, selectedReports.length, report)
      if (freeBytes < request.bytes) continue
      if (
        !selectedReport ||
        freeBytes > selectedFreeBytes ||
        (freeBytes === selectedFreeBytes && report.key < selectedReport.key)
      ) {
        selectedReport = report
        selectedFreeBytes = freeBytes
      }
    }
    if (reports.length === 0) this.#requestWithoutReport ??= request
    return selectedReport
  }

  /** Returns the size of the largest volume that fits, or undefined if it is unknown. */
  #freeBytes(
    report: CapacityReport,
    { bytes, driver }: VolumeRequest,
    selectedReports: readonly CapacityReport[],
  ): bigint | undefined {
    const { reservations, mustFitTogether } = this.#deps
    const { limitBytes, capacityBytes, maximumBytes, ledger } = report
    if (limitBytes === undefined) return undefined
    if (!reservations && !mustFitTogether) return limitBytes
    if (ledger.failedBytes !== undefined && bytes >= ledger.failedBytes) return 0n
    // A driver that allows a volume larger than its free capacity overcommits: reservations are not subtracted.
    const isCounted = capacityBytes !== undefined && (maximumBytes === undefined || capacityBytes >= maximumBytes)
    if (!isCounted) return limitBytes
    let freeBytes = capacityBytes - (reservations?.reservedForOthers(report, this.#claimKeys) ?? 0n)
    for (const [position, other] of selectedReports.entries()) {
      const otherRequest = this.#requests[position]!
      const isSharing = other.segment === report.segment && otherRequest.driver === driver
      // Subtract exactly the share: a larger amount could make a pod that fits unschedulable forever.
      if (isSharing) freeBytes -= shareOf(report, other, otherRequest.bytes)
    }
    return minBytes(freeBytes, limitBytes)
  }

  #recordFree(request: VolumeRequest, bytes: bigint, otherVolumeCount: number, report: CapacityReport): void {
    if (bytes >= request.bytes || (this.#largestFree && bytes <= this.#largestFree.bytes)) return
    const isReduced = bytes < (report.limitBytes ?? 0n)
    const reservedBytes = isReduced ? (this.#deps.reservations?.reservedForOthers(report, this.#claimKeys) ?? 0n) : 0n
    this.#largestFree = { request, bytes, otherVolumeCount, reservedBytes }
  }
}

const describeOtherVolumes = (volumes: number): string =>
  volumes === 1 ? 'after another volume of the pod' : `after ${volumes} other volumes of the pod`

const formatBytes = (bytes: bigint): string => formatQuantity(quantityFromBytes(bytes))
