// The first screen: claims by status, operations, what needs attention first, capacity by class, and the last hour.
import { useEffect, useState } from 'preact/hooks'
import { ListCount, Skeleton } from '../../components/empty.tsx'
import { pluralize } from '../../logic/format.ts'
import { claimViewsVersion, useClaimTable } from '../../state/claim-table.ts'
import { capacities, claims, nodes, operations, quotas, useCollections } from '../../state/collections.ts'
import { AttentionPanel } from './attention-panel.tsx'
import { CapacityPanel } from './capacity-panel.tsx'
import { ClaimsPanel } from './claims-panel.tsx'
import { HistoryPanel } from './history-panel.tsx'
import { OperationsPanel } from './operations-panel.tsx'

export function OverviewScreen() {
  useClaimTable()
  useCollections(capacities, nodes, operations, quotas)
  const version = useThrottledVersion()
  const isLoading = claims.state.value.is === 'loading' && claims.rows.size === 0
  return (
    <section class="screen" aria-labelledby="overview-title">
      <header class="screen-head">
        <h1 id="overview-title">Overview</h1>
        <ListCount state={claims.state.value}>{pluralize(claims.rows.size, 'claim')}</ListCount>
        <ListCount state={nodes.state.value}>{pluralize(nodes.rows.size, 'node')}</ListCount>
      </header>
      <div class="screen-scroll">
        {isLoading ? (
          <Skeleton rows={10} />
        ) : (
          <div class="panels">
            <ClaimsPanel />
            <OperationsPanel />
            <AttentionPanel version={version} />
            <CapacityPanel version={version} />
            <HistoryPanel />
          </div>
        )}
      </div>
    </section>
  )
}

/** The minimum time between two computations of sums over all claims. */
const THROTTLE_MS = 500

function useThrottledVersion(): number {
  const [version, setVersion] = useState(0)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isFirst = true
    const end = claimViewsVersion.subscribe(() => {
      timer ??= setTimeout(
        () => {
          timer = undefined
          setVersion(claimViewsVersion.peek())
        },
        isFirst ? 0 : THROTTLE_MS,
      )
      isFirst = false
    })
    return () => {
      end()
      clearTimeout(timer)
    }
  }, [])
  return version
}
