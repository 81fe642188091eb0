// Everything in progress or waiting: attempts, next retry and last response, grouped by driver, reason, component or
// operation.
import { useMemo } from 'preact/hooks'
import { Empty, ListCount, ListError, Skeleton } from '../../components/empty.tsx'
import { Grid } from '../../components/grid.tsx'
import { Icon } from '../../components/icon.tsx'
import { createMatcher } from '../../logic/filter.ts'
import { formatCount, pluralize } from '../../logic/format.ts'
import { compareOperations, GROUPINGS, groupOf, groupOperations, isGrouping } from '../../logic/operations.ts'
import { formatSort, parseList, parseSort, toggleInList } from '../../logic/url.ts'
import type { OperationRow } from '../../rows/cluster.ts'
import { operations, useCollections } from '../../state/collections.ts'
import { focusGridRow } from '../../state/keys.ts'
import { route, setParams } from '../../state/route.ts'
import { compactOperation, OPERATION_COLUMNS } from './columns.tsx'
import { GroupTable } from './group-table.tsx'
import { OperationDrawer } from './operation-drawer.tsx'

const PHASES = ['Running', 'Retrying', 'Waiting']
const DEFAULT_SORT = '-attempts'

export function OperationsScreen() {
  useCollections(operations)
  const { params } = route.value
  const state = operations.state.value
  const grouping = isGrouping(params.by) ? params.by : undefined
  const sort = parseSort(params.sort, DEFAULT_SORT)
  const phases = parseList(params.phase)
  const version = operations.version.value
  const all = useMemo(() => [...operations.rows.values()], [version])
  const matching = useMemo(() => {
    const matches = createMatcher<OperationRow>(params.q ?? '', {
      driver: ({ driver }) => driver,
      reason: ({ reason }) => reason,
      component: ({ component }) => component,
      ns: ({ namespace }) => namespace,
    })
    return all.filter((row) => (phases.length === 0 || phases.includes(row.phase)) && matches(row))
  }, [all, params.q, params.phase])
  const rows = useMemo(
    () =>
      matching
        .filter((row) => !grouping || params.group === undefined || groupOf(row, grouping) === params.group)
        .sort(compareOperations(sort)),
    [matching, grouping, params.group, params.sort],
  )
  const selected = params.operation === undefined ? undefined : operations.rows.get(params.operation)
  const close = () => {
    setParams({ operation: '' }, 'push')
    focusGridRow(params.operation)
  }
  return (
    <section class="screen" aria-labelledby="operations-title">
      <header class="screen-head">
        <h1 id="operations-title">Operations</h1>
        <ListCount state={state}>
          {rows.length === all.length
            ? pluralize(all.length, 'operation')
            : `${formatCount(rows.length)} of ${pluralize(all.length, 'operation')}`}
        </ListCount>
      </header>
      {state.is === 'failed' ? (
        <div class="screen-scroll">
          <ListError what="Operations" state={state} />
        </div>
      ) : (
        <>
          <search class="toolbar" aria-label="Filter operations">
            <label class="search">
              <span class="sr-only">Search operations</span>
              <Icon name="search" />
              <input
                type="search"
                class="input"
                placeholder="Search, or driver:local"
                value={params.q ?? ''}
                onInput={({ currentTarget }) => setParams({ q: currentTarget.value })}
              />
            </label>
            <div class="chips">
              {PHASES.map((phase) => (
                <button
                  key={phase}
                  type="button"
                  class="chip"
                  aria-pressed={phases.includes(phase)}
                  onClick={() => setParams({ phase: toggleInList(params.phase, phase) })}
                >
                  {phase} <span class="chip-count">{formatCount(all.filter((row) => row.phase === phase).length)}</span>
                </button>
              ))}
            </div>
            <label>
              <span class="sr-only">Group by</span>
              <select
                class="input"
                value={grouping ?? ''}
                onChange={({ currentTarget }) => setParams({ by: currentTarget.value, group: '' })}
              >
                <option value="">Not grouped</option>
                {GROUPINGS.map((name) => (
                  <option key={name} value={name}>
                    Grouped by {name}
                  </option>
                ))}
              </select>
            </label>
          </search>
          {grouping && matching.length > 0 && (
            <GroupTable
              grouping={grouping}
              groups={groupOperations(matching, grouping)}
              selected={params.group}
              onSelect={(group) => setParams({ group: params.group === group ? '' : group })}
            />
          )}
          <div class="split">
            {rows.length > 0 ? (
              <Grid
                label="Operations"
                rows={rows}
                columns={OPERATION_COLUMNS}
                compactCell={compactOperation}
                sort={sort}
                selectedUid={params.operation}
                onSort={(column) =>
                  setParams({
                    sort: formatSort({ column, isDescending: sort.column === column && !sort.isDescending }),
                  })
                }
                onOpen={({ uid }) => setParams({ operation: uid }, 'push')}
                flashValue={({ attempts }) => String(attempts)}
                currentRow={(uid) => operations.rows.get(uid)}
              />
            ) : (
              <div class="split-main">
                <NoRows isLoading={state.is === 'loading'} total={all.length} />
              </div>
            )}
            {params.operation !== undefined && (
              <OperationDrawer key={params.operation} operation={selected} onClose={close} />
            )}
          </div>
        </>
      )}
    </section>
  )
}

function NoRows({ isLoading, total }: { readonly isLoading: boolean; readonly total: number }) {
  if (isLoading) return <Skeleton />
  if (total === 0)
    return (
      <Empty title="Nothing is in progress or waiting.">
        <p>Work of the components appears here while it runs, is retried or waits, and disappears when it is done.</p>
      </Empty>
    )
  return (
    <Empty title={`0 of ${formatCount(total)} operations match.`}>
      <button type="button" class="button" onClick={() => setParams({ q: '', phase: '', group: '' })}>
        Clear filters
      </button>
    </Empty>
  )
}
