// The relations of a claim (pod, claim, volume, attachment, node, driver) and its amounts.
import type { ComponentChildren } from 'preact'
import { Age } from '../../components/age.tsx'
import { Icon } from '../../components/icon.tsx'
import { Meter } from '../../components/meter.tsx'
import { StatusIcon } from '../../components/status.tsx'
import { Unavailable } from '../../components/unavailable.tsx'
import type { Tone } from '../../logic/claim-status.ts'
import type { ClaimView } from '../../logic/claim-view.ts'
import { formatBytes, formatPercent, formatRate } from '../../logic/format.ts'
import { linkTo } from '../../logic/url.ts'
import { useRelatedObjects } from './related-objects.ts'

const PODS_MAX = 3

export function ClaimFacts({ view }: { readonly view: ClaimView }) {
  const { volume, attachments } = useRelatedObjects(view)
  const { claim, pods, usage, node } = view
  const driver = volume?.driver ?? usage?.driver
  return (
    <>
      <div class="relations">
        {pods.slice(0, PODS_MAX).map((pod) => (
          <Relation
            key={pod.uid}
            kind="Pod"
            name={pod.name}
            tone={pod.phase === 'Running' ? 'ok' : 'busy'}
            note={pod.phase}
          />
        ))}
        {pods.length > PODS_MAX && <Relation kind="Pods" name={`and ${pods.length - PODS_MAX} more`} />}
        {pods.length === 0 && <Relation kind="Pods" name="none" />}
        <Arrow />
        <Relation kind="Claim" name={claim.name} tone={view.status.tone} note={claim.phase} />
        <Arrow />
        {claim.volumeName === undefined ? (
          <Relation kind="Volume" name="none yet" />
        ) : (
          <Relation
            kind="Volume"
            name={claim.volumeName}
            {...(volume
              ? { tone: volume.phase === 'Bound' ? 'ok' : 'warn', note: `${volume.phase}, ${volume.reclaimPolicy}` }
              : {})}
          />
        )}
        {attachments.map((attachment) => (
          <Relation
            key={attachment.uid}
            kind="Attachment"
            name={attachment.node}
            tone={attachment.error ? 'bad' : attachment.isAttached ? 'ok' : 'busy'}
            note={attachment.error ?? (attachment.isAttached ? 'attached' : 'attaching')}
          />
        ))}
        {node !== undefined && <Relation kind="Node" name={node} href={linkTo('nodes', { node })} />}
        {driver !== undefined && <Relation kind="Driver" name={driver} href={linkTo('drivers', { driver })} />}
      </div>
      <dl class="facts">
        <dt>Size</dt>
        <dd>
          requested {claim.request ?? 'nothing'}
          {claim.capacity === undefined ? `, ${missingVolume(claim)}` : `, granted ${claim.capacity}`}
        </dd>
        <dt>Used</dt>
        <dd>
          <UsedFact view={view} />
        </dd>
        <dt>Class</dt>
        <dd>
          {claim.className ?? 'none'}
          {claim.attributesClass !== undefined && `, attributes ${claim.attributesClass}`}
          {claim.targetAttributesClass !== undefined && ` → ${claim.targetAttributesClass}`}
          {claim.modifyStatus !== undefined && ` (${claim.modifyStatus})`}
        </dd>
        <dt>Age</dt>
        <dd>
          <Age timeMs={claim.createdMs} />
        </dd>
      </dl>
    </>
  )
}

const missingVolume = ({ phase }: ClaimView['claim']): string =>
  phase === 'Lost' ? 'the volume is lost' : 'no volume yet'

function UsedFact({ view: { usage, usedShare, claim } }: { readonly view: ClaimView }): ComponentChildren {
  if (claim.phase !== 'Bound') return missingVolume(claim)
  if (usage?.usedBytes === undefined || usedShare === undefined)
    return <Unavailable reason={usage?.unknownReason ?? 'The usage has not been measured yet.'} />
  const isIdle = usage.iops === 0 && usage.throughputBytes === 0
  const io = [
    ...(isIdle ? ['no IO now'] : []),
    ...(usage.iops === undefined || isIdle ? [] : [`IO ${formatRate(usage.iops)}`]),
    ...(usage.throughputBytes === undefined || isIdle ? [] : [`${formatBytes(usage.throughputBytes)}/s`]),
    ...(usage.growthBytesPerDay === undefined ? [] : [`grows ${formatBytes(usage.growthBytesPerDay)} a day`]),
  ]
  return (
    <span class="size-cell">
      <Meter share={usedShare} label="Used" />
      <span>
        {formatBytes(usage.usedBytes)}, {formatPercent(usedShare)}
        {io.length > 0 && <span class="muted"> · {io.join(', ')}</span>}
      </span>
    </span>
  )
}

const Arrow = () => (
  <span class="relation-arrow" aria-hidden="true">
    <Icon name="chevron" />
  </span>
)

interface RelationProps {
  readonly kind: string
  readonly name: string
  readonly tone?: Tone
  readonly note?: string
  readonly href?: string
}

const Relation = ({ kind, name, tone, note, href }: RelationProps) => (
  <span class="relation" title={note ? `${name}: ${note}` : name}>
    <span class="relation-kind">{kind}</span>
    <span class="status">
      {tone && <StatusIcon tone={tone} />}
      <span class="truncate">{href ? <a href={href}>{name}</a> : name}</span>
    </span>
    {note && <span class="sr-only">{note}</span>}
  </span>
)
