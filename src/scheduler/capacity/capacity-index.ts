// Finds the capacity reports for a class and a node without looking at the others: the cost is one look-up per distinct
// set of label keys that reports of the class use, however many reports there are. Reports whose selector is not a set
// of places (NotIn, Exists …) are matched one by one; there are rarely any.
//
//   class → label keys → values on the node → reports
//   fast  → [zone]     → b                  → csisc-1, csisc-7

import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { matchesLabels } from '../../api/selectors.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import { getOrMake } from '../get-or-make.ts'
import { type CapacityReport, capacityReport } from './capacity-report.ts'

type Labels = Readonly<Record<string, string>>

interface OfClass {
  readonly everywhere: CapacityReport[]
  readonly selected: CapacityReport[]
  readonly byKeys: Map<string, { readonly keys: readonly string[]; readonly at: Map<string, CapacityReport[]> }>
}

const NONE: readonly CapacityReport[] = []

export class CapacityIndex {
  readonly #reports = new Map<ObjectKey, CapacityReport>()
  readonly #classes = new Map<string, OfClass>()
  readonly #segments = new Map<string, Map<ObjectKey, CapacityReport>>()

  get size(): number {
    return this.#reports.size
  }

  get(key: ObjectKey): CapacityReport | undefined {
    return this.#reports.get(key)
  }

  /** Every report about a node, for volumes of a class. To be read at once: it changes with the index. */
  find(className: string, labels: Labels): readonly CapacityReport[] {
    const ofClass = this.#classes.get(className)
    if (!ofClass) return NONE
    let found: readonly CapacityReport[] = ofClass.everywhere
    for (const { keys, at } of ofClass.byKeys.values()) {
      const place = placeOf(keys, labels)
      const here = place === undefined ? undefined : at.get(place)
      if (here) found = found.length === 0 ? here : [...found, ...here]
    }
    if (ofClass.selected.length > 0) {
      const matching = ofClass.selected.filter(
        ({ reaches }) => reaches.is === 'selected' && matchesLabels(reaches.selector, labels),
      )
      if (matching.length > 0) found = [...found, ...matching]
    }
    return found
  }

  /** Reports of all classes about the very same nodes. */
  inSegment(segment: string): Iterable<CapacityReport> {
    return this.#segments.get(segment)?.values() ?? NONE
  }

  /** What was known of the object before, and what is known now. */
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
    getOrMake(this.#segments, report.segment, () => new Map()).set(report.key, report)
    const none = (): OfClass => ({ everywhere: [], selected: [], byKeys: new Map() })
    const ofClass = getOrMake(this.#classes, report.className, none)
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
    const isEmpty = ofClass.everywhere.length + ofClass.selected.length + ofClass.byKeys.size === 0
    if (isEmpty) this.#classes.delete(report.className)
  }

  #rearrange(ofClass: OfClass, { reaches }: CapacityReport, change: (list: CapacityReport[]) => void): void {
    switch (reaches.is) {
      case 'nobody':
        return
      case 'everybody':
        change(ofClass.everywhere)
        return
      case 'selected':
        change(ofClass.selected)
        return
      case 'places': {
        const id = JSON.stringify(reaches.keys)
        const group = getOrMake(ofClass.byKeys, id, () => ({ keys: reaches.keys, at: new Map() }))
        for (const values of reaches.values) {
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
