// Finds the capacity reports for a class and a node, with one lookup per distinct list of label keys in the reports of the
// class. Reports with other selectors (NotIn, Exists …) are matched individually.
//
//   class → label keys → values on the node → reports
//   fast  → [zone]     → b                  → csisc-1, csisc-7

import type { CSIStorageCapacity } from '../../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { matchesLabels } from '../../../../api/selectors.ts'
import { keyOfObject, type ObjectKey } from '../../../../client/index.ts'
import { getOrCreate } from '../../../get-or-create.ts'
import { type CapacityReport, parseCapacityReport } from './capacity-report.ts'

type Labels = Readonly<Record<string, string>>

interface ClassReports {
  readonly allNodes: CapacityReport[]
  readonly bySelector: CapacityReport[]
  readonly byKeys: Map<string, { readonly keys: readonly string[]; readonly byValues: Map<string, CapacityReport[]> }>
}

const NO_REPORTS: readonly CapacityReport[] = []

export class CapacityIndex {
  readonly #reports = new Map<ObjectKey, CapacityReport>()
  readonly #classes = new Map<string, ClassReports>()
  readonly #segments = new Map<string, Map<ObjectKey, CapacityReport>>()

  get size(): number {
    return this.#reports.size
  }

  get(key: ObjectKey): CapacityReport | undefined {
    return this.#reports.get(key)
  }

  /** Returns the reports of the class about a node with these labels. The array changes with the index: read it immediately. */
  find(className: string, labels: Labels): readonly CapacityReport[] {
    const classReports = this.#classes.get(className)
    if (!classReports) return NO_REPORTS
    let reports: readonly CapacityReport[] = classReports.allNodes
    for (const { keys, byValues } of classReports.byKeys.values()) {
      const valuesKey = valuesKeyOf(keys, labels)
      const labelReports = valuesKey === undefined ? undefined : byValues.get(valuesKey)
      if (labelReports) reports = reports.length === 0 ? labelReports : [...reports, ...labelReports]
    }
    if (classReports.bySelector.length > 0) {
      const matching = classReports.bySelector.filter(
        ({ topology }) => topology.is === 'selector' && matchesLabels(topology.selector, labels),
      )
      if (matching.length > 0) reports = [...reports, ...matching]
    }
    return reports
  }

  /** Returns the capacity of each report minus its reservations. Reports without a capacity are omitted. */
  freeBytes(): ReadonlyMap<ObjectKey, bigint> {
    const freeBytes = new Map<ObjectKey, bigint>()
    for (const { key, capacityBytes, ledger } of this.#reports.values()) {
      if (capacityBytes === undefined) continue
      const free = capacityBytes - ledger.reservedBytes
      freeBytes.set(key, free > 0n ? free : 0n)
    }
    return freeBytes
  }

  /** Returns the reports of all classes about the same nodes. */
  reportsInSegment(segment: string): Iterable<CapacityReport> {
    return this.#segments.get(segment)?.values() ?? NO_REPORTS
  }

  /** Returns the object's previous report and the new one. */
  put(object: Readonly<CSIStorageCapacity>): { previous: CapacityReport | undefined; current: CapacityReport } {
    const previous = this.#reports.get(keyOfObject(object))
    const current = parseCapacityReport(object, previous?.ledger)
    if (previous) this.#delete(previous)
    this.#add(current)
    return { previous, current }
  }

  remove(key: ObjectKey): void {
    const report = this.#reports.get(key)
    if (report) this.#delete(report)
  }

  #add(report: CapacityReport): void {
    this.#reports.set(report.key, report)
    getOrCreate(this.#segments, report.segment, () => new Map()).set(report.key, report)
    const createClassReports = (): ClassReports => ({ allNodes: [], bySelector: [], byKeys: new Map() })
    const classReports = getOrCreate(this.#classes, report.className, createClassReports)
    this.#updateLists(classReports, report, (list) => void list.push(report))
  }

  #delete(report: CapacityReport): void {
    this.#reports.delete(report.key)
    const segment = this.#segments.get(report.segment)
    segment?.delete(report.key)
    if (segment?.size === 0) this.#segments.delete(report.segment)
    const classReports = this.#classes.get(report.className)
    if (!classReports) return
    this.#updateLists(classReports, report, (list) => void list.splice(list.indexOf(report), 1))
    const isEmpty = classReports.allNodes.length + classReports.bySelector.length + classReports.byKeys.size === 0
    if (isEmpty) this.#classes.delete(report.className)
  }

  #updateLists(
    classReports: ClassReports,
    { topology }: CapacityReport,
    update: (list: CapacityReport[]) => void,
  ): void {
    switch (topology.is) {
      case 'no nodes':
        return
      case 'all nodes':
        update(classReports.allNodes)
        return
      case 'selector':
        update(classReports.bySelector)
        return
      case 'label values': {
        const id = JSON.stringify(topology.keys)
        const group = getOrCreate(classReports.byKeys, id, () => ({ keys: topology.keys, byValues: new Map() }))
        for (const values of topology.values) {
          const valuesKey = joinValues(values)
          const list = group.byValues.get(valuesKey) ?? []
          update(list)
          if (list.length > 0) group.byValues.set(valuesKey, list)
          else group.byValues.delete(valuesKey)
        }
        if (group.byValues.size === 0) classReports.byKeys.delete(id)
      }
    }
  }
}

function valuesKeyOf(keys: readonly string[], labels: Labels): string | undefined {
  const [first] = keys
  if (keys.length === 1) return labels[first!]
  const values: string[] = []
  for (const key of keys) {
    const value = labels[key]
    if (value === undefined) return undefined
    values.push(value)
  }
  return joinValues(values)
}

/** Label values contain no line breaks, so the result is unambiguous. */
const joinValues = (values: readonly string[]): string => (values.length === 1 ? values[0]! : values.join('\n'))
