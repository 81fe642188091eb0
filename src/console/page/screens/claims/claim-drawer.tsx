// Everything about one claim: relations, actions, causes, timeline, events and YAML. If the claim is deleted while the drawer is
// open, its last state stays visible.
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Icon } from '../../components/icon.tsx'
import { Status } from '../../components/status.tsx'
import { Tabs } from '../../components/tabs.tsx'
import type { ClaimView } from '../../logic/claim-view.ts'
import { formatClock } from '../../logic/format.ts'
import { claimViewsVersion, viewOfClaim } from '../../state/claim-table.ts'
import { claims } from '../../state/collections.ts'
import { addKeys } from '../../state/keys.ts'
import { route, setParams } from '../../state/route.ts'
import { ClaimActions } from './claim-actions.tsx'
import { ClaimFacts } from './claim-facts.tsx'
import { EventsTab } from './events-tab.tsx'
import { TimelineTab } from './timeline-tab.tsx'
import { WhyTab } from './why-tab.tsx'
import { YamlTab } from './yaml-tab.tsx'

const TABS = { why: 'Why', timeline: 'Timeline', events: 'Events', yaml: 'YAML' } as const
type TabName = keyof typeof TABS

interface ClaimDrawerProps {
  /** namespace/name */
  readonly claimKey: string
  onClose(): void
}

export function ClaimDrawer({ claimKey, onClose }: ClaimDrawerProps) {
  void claimViewsVersion.value
  const lastView = useRef<ClaimView | undefined>(undefined)
  const deletedMs = useSignal<number | undefined>(undefined)
  const title = useRef<HTMLHeadingElement>(null)
  const current = viewOfClaim(claimKey)
  if (current) lastView.current = current
  else if (lastView.current && deletedMs.peek() === undefined) deletedMs.value = Date.now()
  const tab = (Object.keys(TABS) as TabName[]).find((name) => name === route.value.params.tab) ?? 'why'
  const select = (name: TabName) => setParams({ tab: name === 'why' ? '' : name })
  useEffect(() => {
    title.current?.focus()
    return addKeys({ Escape: onClose, y: () => select('yaml'), v: () => select('events'), t: () => select('timeline') })
  }, [])
  const view = lastView.current
  const [namespace = '', name = ''] = claimKey.split('/')
  return (
    <section class="drawer" aria-label={`Claim ${claimKey}`}>
      <div class="drawer-head">
        <div class="drawer-title">
          <h2 ref={title} tabIndex={-1}>
            <span class="muted">{namespace} / </span>
            {name}
          </h2>
          {view && <Status {...view.status} />}
          <button type="button" class="button-icon" aria-label="Close claim" onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
        {!current && view && (
          <p class="note" role="status">
            Deleted at {formatClock(deletedMs.value ?? Date.now())} UTC. This is its last state.
          </p>
        )}
        {view && <ClaimFacts view={view} />}
        {view && current && <ClaimActions view={view} />}
        {!view && (
          <p class="muted">
            {claims.state.value.is === 'synced' ? 'This claim does not exist.' : 'The claims are being loaded.'}
          </p>
        )}
      </div>
      {view && (
        <Tabs label="Details of the claim" tabs={TABS} selected={tab} onSelect={select}>
          {tab === 'why' && <WhyTab view={view} />}
          {tab === 'timeline' && <TimelineTab view={view} />}
          {tab === 'events' && <EventsTab view={view} />}
          {tab === 'yaml' && <YamlTab view={view} />}
        </Tabs>
      )}
    </section>
  )
}
