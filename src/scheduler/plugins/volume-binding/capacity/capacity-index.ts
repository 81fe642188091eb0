// Finds the capacity reports for a class and a node with one look-up per distinct set of label keys that reports of the
// class use, however many reports there are. Reports with other selectors (NotIn, Exists …) are rare and matched one by
// one.
//
//   class → label keys → values on the node → reports
//   fast  → [zone]     → b                  → csisc-1, csisc-7

import type { CSIStorageCapacity } from '../../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { matchesLabels } from '../../../../api/selectors.ts'
import { keyOfObject, type ObjectKey } from '../../../../client/index.ts'
import { getOrCreate } from '../../../get-or-create.ts'
import { type CapacityReport, capacityReport } from './capacity-report.ts'

type Labels = Readonly<Record<string, string>>

interface ClassReports {
  readonly allNodes: CapacityReport[]
  readonly bySelector: CapacityReport[]
  readonly byKeys: Map<string, { readonly keys: readonly string[]; readonly at: Map<string, CapacityReport[]> }>
}

const NONE: readonly CapacityReport[] = []

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

  /** Every report of the class about a node with these labels. Read it synchronously: it changes with the index. */
  find(className: string, labels: Labels): readonly CapacityReport[] {
    const ofClass = this.#classes.get(className)
    if (!ofClass) return NONE
    let found: readonly CapacityReport[] = ofClass.allNodes
    for (const { keys, at } of ofClass.byKeys.values()) {
      const place = placeOf(keys, labels)
      const here = place === undefined ? undefined : at.get(place)
      if (here) found = found.length === 0 ? here : [...found, ...here]
    }
    if (ofClass.bySelector.length > 0) {
      const matching = ofClass.bySelector.filter(
        ({ topology }) => topology.is === 'selector' && matchesLabels(topology.selector, labels),
      )
      if (matching.length > 0) found = [...found, ...matching]
    }
    return found
  }

  /** Reports of all classes about the same nodes. */
  inSegment(segment: string): Iterable<CapacityReport> {
    return this.#segments.get(segment)?.values() ?? NONE
  }

  /** Returns the object's previous report and the new one. */
  put(object: Readonly<CSIStorageCapacity>): { before: CapacityReport | undefined; now: CapacityReport } {
    const before = this.#reports.get(keyOfObject(object))
    const now = capacityReport(object, before?.ledger)
    if (before) this.#leave(before)
    this.#enter(now)
    return { before, now }
  }

  remove(key: ObjectKey): void {
    const report = this.#reports.get(key)
    if (report) this.#leave(report)
  }

  #enter(report: CapacityReport): void {
    this.#reports.set(report.key, report)
    getOrCreate(this.#segments, report.segment, () => new Map()).set(report.key, report)
    const none = (): ClassReports => ({ allNodes: [], bySelector: [], byKeys: new Map() })
    const ofClass = getOrCreate(this.#classes, report.className, none)
    this.#rearrange(ofClass, report, (list) => void list.push(report))
  }

  #leave(report: CapacityReport): void {
    this.#reports.delete(report.key)
    const segment = this.#segments.get(report.segment)
    segment?.delete(report.key)
    if (segment?.size === 0) this.#segments.delete(report.segment)
    const ofClass = this.#classes.get(report.className)
    if (!ofClass) return
    this.#rearrange(ofClass, report, (list) => void list.splice(list.indexOf(report), 1))
    const isEmpty = ofClass.allNodes.length + ofClass.bySelector.length + ofClass.byKeys.size === 0
    if (isEmpty) this.#classes.delete(report.className)
  }

  #rearrange(ofClass: ClassReports, { topology }: CapacityReport, change: (list: CapacityReport[]) => void): void {
    switch (topology.is) {
      case 'no nodes':
        return
      case 'all nodes':
        change(ofClass.allNodes)
        return
      case 'selector':
        change(ofClass.bySelector)
        return
      case 'places': {
        const id = JSON.stringify(topology.keys)
        const group = getOrCreate(ofClass.byKeys, id, () => ({ keys: topology.keys, at: new Map() }))
        for (const values of topology.values) {
          const place = joined(values)
          const list = group.at.get(place) ?? []
          change(list)
          if (list.length > 0) group.at.set(place, list)
          else group.at.delete(place)
        }
        if (group.at.size === 0) ofClass.byKeys.delete(id)
      }
    }
  }
}

function placeOf(keys: readonly string[], labels: Labels): string | undefined {
  const [first] = keys
  if (keys.length === 1) return labels[first!]
  const values: string[] = []
  for (const key of keys) {
    const value = labels[key]
    if (value === undefined) return undefined
    values.push(value)
  }
  return joined(values)
}

/** Label values hold no line breaks. */
const joined = (values: readonly string[]): string => (values.length === 1 ? values[0]! : values.join('\n'))
