// The screen with all claims: filters in the URL, a live table, and a drawer with everything about one claim.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Empty, ListCount, ListError, Skeleton } from '../../components/empty.tsx'
import { Grid } from '../../components/grid.tsx'
import { ScopeChoice } from '../../components/scope-choice.tsx'
import { type ClaimFilter, type ClaimView, compareClaims, isSortColumn, matchClaims } from '../../logic/claim-view.ts'
import { formatCount, pluralize } from '../../logic/format.ts'
import { SortedView } from '../../logic/sorted-view.ts'
import { formatSort, linkTo, parseSort, type SortOrder } from '../../logic/url.ts'
import { claimViews, claimViewsVersion, onClaimChanges, useClaimTable, viewOfClaim } from '../../state/claim-table.ts'
import { claims } from '../../state/collections.ts'
import { whyLines } from '../../state/data.ts'
import { focusGridRow } from '../../state/keys.ts'
import { route, setParams } from '../../state/route.ts'
import { ClaimDrawer } from './claim-drawer.tsx'
import { CLAIM_COLUMNS, compactClaim } from './columns.tsx'
import { ClaimFilters } from './filters.tsx'

const DEFAULT_SORT = 'namespace'

export function ClaimsScreen() {
  useClaimTable()
  const { params } = route.value
  const sort = readSort(params.sort)
  const rows = useSortedClaims(params, sort)
  const { is } = claims.state.value
  const total = claimViews.size
  const selected = params.claim
  const selectedUid = selected === undefined ? undefined : viewOfClaim(selected)?.uid
  const open = ({ key }: ClaimView) => setParams({ claim: key }, 'push')
  const close = () => {
    setParams({ claim: '', tab: '' }, 'push')
    focusGridRow(selectedUid)
  }
  const isFiltered = rows.length !== total
  return (
    <section class="screen" aria-labelledby="claims-title">
      <header class="screen-head">
        <h1 id="claims-title">Claims</h1>
        <ListCount state={claims.state.value}>
          {is === 'loading'
            ? `loading, ${formatCount(total)} so far`
            : isFiltered
              ? `${formatCount(rows.length)} of ${pluralize(total, 'claim')}`
              : pluralize(total, 'claim')}
        </ListCount>
        {(whyLines.state.value.value?.omitted ?? 0) > 0 && (
          <span class="muted">causes of the first 2,000 claims that are not ready</span>
        )}
        {params.ns !== undefined && rows.length > 0 && rows.length <= BULK_MAX && (
          <a class="button button-small actions" href={linkToBulk(params.ns, rows)}>
            Grow {pluralize(rows.length, 'claim')} in bulk…
          </a>
        )}
      </header>
      <ClaimFilters params={params} />
      {is === 'failed' ? (
        <div class="screen-scroll">
          <ListError what="Claims" state={claims.state.value} />
          <ScopeChoice />
        </div>
      ) : total === 0 ? (
        <NoClaims isLoading={is !== 'synced'} />
      ) : (
        <div class="split">
          {rows.length === 0 ? (
            <div class="split-main">
              <Empty title={`0 of ${formatCount(total)} claims match.`}>
                <button type="button" class="button" onClick={clearFilters}>
                  Clear filters
                </button>
              </Empty>
            </div>
          ) : (
            <Grid
              label="Claims"
              rows={rows}
              columns={CLAIM_COLUMNS}
              compactCell={compactClaim}
              sort={sort}
              selectedUid={selectedUid}
              onSort={(column) => setParams({ sort: nextSort(sort, column) })}
              onOpen={open}
              flashValue={({ status }) => status.word}
              currentRow={(uid) => claimViews.get(uid)}
            />
          )}
          {selected !== undefined && <ClaimDrawer key={selected} claimKey={selected} onClose={close} />}
        </div>
      )}
    </section>
  )
}

const NoClaims = ({ isLoading }: { readonly isLoading: boolean }) =>
  isLoading ? (
    <Skeleton rows={12} />
  ) : (
    <Empty
      title="There are no claims yet."
      command={
        "kubectl apply -f - <<'EOF'\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\nEOF"
      }
    >
      <p>A claim requests a volume of a class. It appears here as soon as it is created:</p>
    </Empty>
  )

const readSort = (text: string | undefined): SortOrder => {
  const sort = parseSort(text, DEFAULT_SORT)
  return isSortColumn(sort.column) ? sort : parseSort(undefined, DEFAULT_SORT)
}

/** The same column again reverses the order. */
const nextSort = (sort: SortOrder, column: string): string => {
  const next = formatSort({ column, isDescending: sort.column === column && !sort.isDescending })
  return next === DEFAULT_SORT ? '' : next
}

/** Bounds the names in the link to a bulk run. */
const BULK_MAX = 100

const linkToBulk = (ns: string, rows: readonly ClaimView[]): string =>
  linkTo('bulk', { ns, names: rows.map(({ name }) => name).join(' ') })

const clearFilters = () => setParams({ q: '', ns: '', status: '', class: '', node: '', problems: '' })

function useSortedClaims(params: ClaimFilter, sort: SortOrder): readonly ClaimView[] {
  const { q, ns, status, class: className, node, problems } = params
  const view = useRef<SortedView<ClaimView> | undefined>(undefined)
  const [, setVersion] = useState(0)
  const rules = useMemo(
    () => ({ matches: matchClaims({ q, ns, status, class: className, node, problems }), compare: compareClaims(sort) }),
    [q, ns, status, className, node, problems, sort.column, sort.isDescending],
  )
  const builtRules = useRef<typeof rules | undefined>(undefined)
  view.current ??= new SortedView(rules)
  if (builtRules.current !== rules) {
    builtRules.current = rules
    view.current.rebuild(rules, claimViews.values())
  }
  useEffect(() => {
    setVersion(claimViewsVersion.peek())
    view.current!.rebuild(builtRules.current!, claimViews.values())
    return onClaimChanges((changes) => {
      view.current!.apply(changes, () => claimViews.values())
      setVersion((version) => version + 1)
    })
  }, [])
  return view.current.rows
}
