// A virtual table with rows of fixed height: only the visible rows and some around them are in the document. It has the ARIA role
// grid and supports the arrow keys, j, k, PageUp, PageDown, Home, End and Enter.
// biome-ignore-all lint/a11y/useSemanticElements: rows are positioned one by one, which the layout of a table element prevents
// biome-ignore-all lint/a11y/useFocusableInteractive: the focus moves between whole rows
import { Component, type ComponentChildren, createRef } from 'preact'
import type { Identified } from '../logic/sorted-view.ts'
import type { SortOrder } from '../logic/url.ts'
import { activateGrid, deactivateGrid, type KeyTarget } from '../state/keys.ts'
import { HeldRows } from './held-rows.ts'

export interface Column<R> {
  readonly id: string
  readonly title: string
  /** A track of CSS grid, such as `6rem` or `minmax(8rem, 2fr)`. */
  readonly width: string
  readonly isNumber?: boolean
  readonly isSortable?: boolean
  /** The column is omitted if the table is narrower than this, in rem. */
  readonly minTableRem?: number
  cell(row: R): ComponentChildren
}

interface GridProps<R extends Identified> {
  readonly label: string
  readonly rows: readonly R[]
  readonly columns: readonly Column<R>[]
  readonly sort?: SortOrder | undefined
  readonly selectedUid?: string | undefined
  /** Replaces the cells in a narrow table, whose rows are taller. */
  compactCell?(row: R): ComponentChildren
  onSort?(column: string): void
  onOpen?(row: R): void
  /** Returns a value of the row. When it changes, the row flashes once. */
  flashValue?(row: R): string
  currentRow?(uid: string): R | undefined
}

interface GridState {
  readonly firstIndex: number
  readonly heightPx: number
  readonly widthPx: number
  readonly focusUid: string | undefined
}

const ROW_REM = 2.125
const COMPACT_ROW_REM = 4
const COMPACT_BELOW_REM = 40
const OVERSCAN_ROWS = 8
/** The first index is rounded down to a multiple of this, so that scrolling does not render for every row. */
const STEP_ROWS = 4

const remPx = (): number => Number.parseFloat(getComputedStyle(document.documentElement).fontSize)

export class Grid<R extends Identified> extends Component<GridProps<R>, GridState> implements KeyTarget {
  override state: GridState = { firstIndex: 0, heightPx: 600, widthPx: 1200, focusUid: undefined }
  readonly #scroller = createRef<HTMLDivElement>()
  readonly #held = new HeldRows<R>(() => this.forceUpdate())
  #observer: ResizeObserver | undefined
  #shouldFocus = false
  #focusIndexHint = 0
  #shownRowPx = 0

  override componentDidMount(): void {
    activateGrid(this)
    this.#observer = new ResizeObserver(([entry]) => {
      const { width, height } = entry!.contentRect
      this.setState({ widthPx: width, heightPx: height })
    })
    this.#observer.observe(this.#scroller.current!)
    this.#showSelected()
  }

  override componentWillUnmount(): void {
    deactivateGrid(this)
    this.#observer?.disconnect()
    this.#held.stop()
  }

  override componentDidUpdate({ selectedUid }: GridProps<R>): void {
    const rowPx = this.#rowPx()
    if (selectedUid !== this.props.selectedUid || rowPx !== this.#shownRowPx) this.#showSelected()
    this.#shownRowPx = rowPx
    if (!this.#shouldFocus) return
    this.#shouldFocus = false
    this.#rowElement(this.state.focusUid)?.focus({ preventScroll: true })
  }

  /** Moves the focus by a number of rows, within the table. */
  moveFocus(by: number): void {
    const rows = this.#rows()
    if (rows.length === 0) return
    this.#held.touch()
    const uid = this.state.focusUid ?? this.props.selectedUid
    const current = uid === undefined ? -1 : rows.findIndex((row) => row.uid === uid)
    const index = Math.max(0, Math.min(rows.length - 1, current === -1 ? 0 : current + by))
    this.#focusIndex(index)
  }

  openFocused(): void {
    const row = this.#rows().find(({ uid }) => uid === this.state.focusUid)
    if (row) this.props.onOpen?.(row)
  }

  /** Moves the focus to the row after a drawer is closed. */
  focusRow(uid: string | undefined): void {
    const index = this.#rows().findIndex((row) => row.uid === uid)
    if (index >= 0) this.#focusIndex(index)
  }

  #showSelected(): void {
    const { selectedUid } = this.props
    if (selectedUid !== undefined) this.#scrollTo(this.#rows().findIndex(({ uid }) => uid === selectedUid))
  }

  #focusIndex(index: number): void {
    const row = this.#rows()[index]
    if (!row) return
    this.#scrollTo(index)
    this.#shouldFocus = true
    this.setState({ focusUid: row.uid, firstIndex: this.#firstIndex() })
  }

  /** Scrolls the row into view with the smallest movement. */
  #scrollTo(index: number): void {
    const scroller = this.#scroller.current
    if (!scroller || index < 0) return
    const rowPx = this.#rowPx()
    const headPx = scroller.querySelector<HTMLElement>('.grid-head')?.offsetHeight ?? 0
    const top = index * rowPx
    const viewPx = scroller.clientHeight - headPx
    if (top < scroller.scrollTop) scroller.scrollTop = top
    else if (top + rowPx > scroller.scrollTop + viewPx) scroller.scrollTop = top + rowPx - viewPx
  }

  #rowElement(uid: string | undefined): HTMLElement | undefined {
    return [...(this.#scroller.current?.querySelectorAll<HTMLElement>('.grid-row') ?? [])].find(
      ({ dataset }) => dataset.uid === uid,
    )
  }

  #rows(): readonly R[] {
    return this.#held.rows
  }

  /** Returns whether the table has the focused row. Remembers its index, because a search in each render would be slow. */
  #hasFocusRow(rows: readonly R[]): boolean {
    const { focusUid } = this.state
    if (focusUid === undefined) return false
    if (rows[this.#focusIndexHint]?.uid !== focusUid)
      this.#focusIndexHint = rows.findIndex(({ uid }) => uid === focusUid)
    return this.#focusIndexHint >= 0
  }

  #isCompact(): boolean {
    return this.props.compactCell !== undefined && this.state.widthPx < COMPACT_BELOW_REM * remPx()
  }

  #rowPx(): number {
    return (this.#isCompact() ? COMPACT_ROW_REM : ROW_REM) * remPx()
  }

  #firstIndex(): number {
    const first = Math.floor((this.#scroller.current?.scrollTop ?? 0) / this.#rowPx()) - OVERSCAN_ROWS
    return Math.max(0, first - (first % STEP_ROWS))
  }

  readonly #onScroll = (): void => {
    const firstIndex = this.#firstIndex()
    if (firstIndex !== this.state.firstIndex) this.setState({ firstIndex })
  }

  readonly #onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget && !(event.target as HTMLElement).classList.contains('grid-row')) return
    const pageRows = Math.max(1, Math.floor(this.state.heightPx / this.#rowPx()) - 2)
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: pageRows,
      PageUp: -pageRows,
      Home: -this.#rows().length,
      End: this.#rows().length,
    }
    const by = moves[event.key]
    if (by !== undefined) this.moveFocus(by)
    else if (event.key === 'Enter') this.openFocused()
    else return
    event.preventDefault()
    event.stopPropagation()
  }

  override render({ label, columns, sort, compactCell, ...props }: GridProps<R>, state: GridState) {
    const { changes } = this.#held.update(props.rows, props.currentRow)
    const rows = this.#rows()
    const isCompact = this.#isCompact()
    const rem = state.widthPx / remPx()
    const shownColumns = isCompact
      ? [compactColumn(compactCell!)]
      : columns.filter(({ minTableRem = 0 }) => rem >= minTableRem)
    const rowPx = this.#rowPx()
    const endIndex = Math.min(
      rows.length,
      state.firstIndex + Math.ceil(state.heightPx / rowPx) + 2 * OVERSCAN_ROWS + STEP_ROWS,
    )
    const tabUid = this.#hasFocusRow(rows) ? state.focusUid : rows[0]?.uid
    const indexes = Array.from({ length: Math.max(0, endIndex - state.firstIndex) }, (_, i) => state.firstIndex + i)
    const tracks = shownColumns.map(({ width }) => width).join(' ')
    return (
      <div class={`grid-frame${isCompact ? ' grid-compact' : ''}`}>
        {changes > 0 && (
          <button type="button" class="grid-held" onClick={() => this.#held.release()}>
            {changes} {changes === 1 ? 'change' : 'changes'}: show
          </button>
        )}
        <div
          class="grid"
          role="grid"
          aria-label={label}
          aria-rowcount={rows.length + 1}
          aria-colcount={shownColumns.length}
          ref={this.#scroller}
          onScroll={this.#onScroll}
          onKeyDown={this.#onKeyDown}
          onPointerMove={() => this.#held.touch()}
          onPointerLeave={() => this.#held.release()}
          style={{
            '--tracks': tracks,
            '--row-height': `${rowPx}px`,
            '--least-width': `${leastWidthRem(shownColumns)}rem`,
          }}
        >
          <div class="grid-head" role="rowgroup">
            <div class="grid-line" role="row" aria-rowindex={1}>
              {shownColumns.map((column) => (
                <HeadCell key={column.id} column={column} sort={sort} onSort={props.onSort} />
              ))}
            </div>
          </div>
          <div class="grid-body" role="rowgroup" style={{ height: `${rows.length * rowPx}px` }}>
            {indexes.map((index) => {
              const row = rows[index]!
              return (
                <GridRow
                  key={row.uid}
                  row={row}
                  index={index}
                  topPx={index * rowPx}
                  columns={shownColumns}
                  tracks={tracks}
                  isSelected={row.uid === props.selectedUid}
                  isTabStop={row.uid === tabUid}
                  flashValue={props.flashValue?.(row)}
                  onOpen={this.#open}
                />
              )
            })}
          </div>
        </div>
      </div>
    )
  }

  readonly #open = (row: R): void => {
    this.setState({ focusUid: row.uid })
    this.props.onOpen?.(row)
  }
}

/** The sum of the minimum widths; a narrower table scrolls sideways. */
const leastWidthRem = (columns: readonly { readonly width: string }[]): number =>
  columns.reduce((sum, { width }) => sum + Number.parseFloat(width.replace('minmax(', '')), 1.25)

const compactColumns = new WeakMap<object, Column<never>>()

/** Returns the same column for the same function, so that rows are not rendered again. */
function compactColumn<R>(cell: (row: R) => ComponentChildren): Column<R> {
  let column = compactColumns.get(cell) as Column<R> | undefined
  if (!column) {
    column = { id: 'compact', title: '', width: 'minmax(0, 1fr)', cell }
    compactColumns.set(cell, column as Column<never>)
  }
  return column
}

interface HeadCellProps<R> {
  readonly column: Column<R>
  readonly sort: SortOrder | undefined
  readonly onSort: ((column: string) => void) | undefined
}

function HeadCell<R>({ column: { id, title, isNumber, isSortable }, sort, onSort }: HeadCellProps<R>) {
  const isSorted = sort?.column === id
  const direction = isSorted ? (sort.isDescending ? 'descending' : 'ascending') : undefined
  return (
    <div
      role="columnheader"
      class={`grid-cell${isNumber ? ' number' : ''}`}
      {...(isSortable ? { 'aria-sort': direction ?? 'none' } : {})}
    >
      {isSortable && onSort ? (
        <button type="button" class="sort" onClick={() => onSort(id)}>
          {title}
          <span class="sort-mark" aria-hidden="true">
            {direction === 'ascending' ? '↑' : direction === 'descending' ? '↓' : ''}
          </span>
        </button>
      ) : (
        title || <span class="sr-only">Summary</span>
      )}
    </div>
  )
}

interface GridRowProps<R> {
  readonly row: R
  readonly index: number
  readonly topPx: number
  readonly columns: readonly Column<R>[]
  readonly tracks: string
  readonly isSelected: boolean
  readonly isTabStop: boolean
  readonly flashValue: string | undefined
  onOpen(row: R): void
}

/** Renders again only if its own row, position or selection has changed. */
class GridRow<R extends Identified> extends Component<GridRowProps<R>> {
  readonly #element = createRef<HTMLDivElement>()

  override shouldComponentUpdate(next: GridRowProps<R>): boolean {
    const { row, index, topPx, tracks, isSelected, isTabStop } = this.props
    return (
      row !== next.row ||
      index !== next.index ||
      topPx !== next.topPx ||
      tracks !== next.tracks ||
      isSelected !== next.isSelected ||
      isTabStop !== next.isTabStop
    )
  }

  override componentDidUpdate({ flashValue }: GridRowProps<R>): void {
    if (flashValue === this.props.flashValue || matchMedia('(prefers-reduced-motion: reduce)').matches) return
    this.#element.current?.animate([{ backgroundColor: 'var(--flash)' }, {}], { duration: 1_200, easing: 'ease-out' })
  }

  override render({ row, index, topPx, columns, isSelected, isTabStop, onOpen }: GridRowProps<R>) {
    return (
      // biome-ignore lint/a11y/useKeyWithClickEvents: the grid handles Enter for its rows
      <div
        class="grid-line grid-row"
        role="row"
        aria-rowindex={index + 2}
        aria-selected={isSelected}
        tabIndex={isTabStop ? 0 : -1}
        data-uid={row.uid}
        ref={this.#element}
        style={{ transform: `translateY(${topPx}px)` }}
        onClick={(event) => {
          if (!(event.target as HTMLElement).closest('button, a, input')) onOpen(row)
        }}
      >
        {columns.map((column) => (
          <div key={column.id} role="gridcell" class={`grid-cell${column.isNumber ? ' number' : ''}`}>
            {column.cell(row)}
          </div>
        ))}
      </div>
    )
  }
}
