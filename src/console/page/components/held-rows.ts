// Preserves the order of rows while the pointer or the keyboard moves in a table, so that a row does not move away under a click.
// Rows are still updated in place, and the number of added, removed and moved rows is shown instead.
import type { Identified } from '../logic/sorted-view.ts'

/** How long the order is preserved after the last movement. */
const HOLD_MS = 2_000

export class HeldRows<R extends Identified> {
  rows: readonly R[] = []
  #source: readonly R[] = []
  #untilMs = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #changes = 0
  readonly #render: () => void

  constructor(render: () => void) {
    this.#render = render
  }

  /** Records a pointer or key movement in the table. */
  touch(): void {
    this.#untilMs = Date.now() + HOLD_MS
  }

  /** Shows the current order. */
  release(): void {
    this.#untilMs = 0
    if (this.rows !== this.#source) this.#render()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  /** Returns the number of rows that would be added, removed or moved. Without `currentRow` the order is never preserved. */
  update(source: readonly R[], currentRow?: (uid: string) => R | undefined): { readonly changes: number } {
    const isHeld = currentRow !== undefined && Date.now() < this.#untilMs && this.rows.length > 0
    if (!isHeld || source.length === 0) {
      this.#source = source
      this.rows = source
      this.#changes = 0
      return { changes: 0 }
    }
    if (source === this.#source) return { changes: this.#changes }
    this.#source = source
    this.#changes = countChangedRows(this.rows, source)
    this.rows = this.#changes === 0 ? source : this.rows.map((row) => currentRow(row.uid) ?? row)
    clearTimeout(this.#timer)
    if (this.#changes > 0) this.#timer = setTimeout(() => this.#renderUnlessTouched(), HOLD_MS)
    return { changes: this.#changes }
  }

  #renderUnlessTouched(): void {
    const leftMs = this.#untilMs - Date.now()
    if (leftMs > 0) this.#timer = setTimeout(() => this.#renderUnlessTouched(), leftMs)
    else this.#render()
  }
}

/** Returns the number of rows that were added, removed or moved from the first list to the second. */
export function countChangedRows(rows: readonly Identified[], others: readonly Identified[]): number {
  const uids = new Set(rows.map(({ uid }) => uid))
  const added = others.filter(({ uid }) => !uids.has(uid))
  const otherUids = new Set(others.map(({ uid }) => uid))
  const common = rows.filter(({ uid }) => otherUids.has(uid))
  const commonOthers = others.filter(({ uid }) => uids.has(uid))
  const moved = common.filter(({ uid }, index) => commonOthers[index]!.uid !== uid).length
  return added.length + (rows.length - common.length) + moved
}
