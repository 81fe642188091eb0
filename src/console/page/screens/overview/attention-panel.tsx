// Shows what needs attention first, each entry with its cause and a link.
import { useMemo } from 'preact/hooks'
import { Panel } from '../../components/panel.tsx'
import { StatusIcon } from '../../components/status.tsx'
import { listAttentionItems } from '../../logic/attention.ts'
import { claimViews } from '../../state/claim-table.ts'
import { capacities, claims, nodes, operations, quotas } from '../../state/collections.ts'

const ITEMS_MAX = 8

export function AttentionPanel({ version }: { readonly version: number }) {
  const items = useMemo(
    () =>
      listAttentionItems({
        claims: [...claimViews.values()],
        nodes: nodes.rows.values(),
        operations: operations.rows.values(),
        quotas: quotas.rows.values(),
        capacities: capacities.rows.values(),
      }),
    [version, nodes.version.value, operations.version.value, quotas.version.value, capacities.version.value],
  )
  return (
    <Panel title="Needs attention first" span={7} note={items.length > 0 ? String(items.length) : undefined}>
      {items.length === 0 && (
        <p class="status tone-ok">
          <StatusIcon tone={claims.state.value.is === 'synced' ? 'ok' : 'busy'} />
          {claims.state.value.is === 'synced' ? 'Nothing needs attention.' : 'Being checked.'}
        </p>
      )}
      <ol class="attention">
        {items.slice(0, ITEMS_MAX).map(({ key, tone, title, cause, href }) => (
          <li key={key}>
            <StatusIcon tone={tone} />
            <div>
              <a href={href}>{title}</a>
              <p class="muted wrap-anywhere">{cause}</p>
            </div>
          </li>
        ))}
      </ol>
      {items.length > ITEMS_MAX && <p class="muted">… and {items.length - ITEMS_MAX} more</p>}
    </Panel>
  )
}
