// The dialog that expands a claim. It shows the storage that is free for the volume, and the usage of each quota after the
// expansion.
import { useSignal } from '@preact/signals'
import { StatusIcon } from '../components/status.tsx'
import { Unavailable } from '../components/unavailable.tsx'
import { sizeWrite } from '../logic/claim-actions.ts'
import type { ClaimView } from '../logic/claim-view.ts'
import { formatBytes } from '../logic/format.ts'
import { findFreeStorage } from '../logic/free-storage.ts'
import { formatQuantity, readSize } from '../logic/quantity.ts'
import { computeQuotaEffects } from '../logic/quota-check.ts'
import { useRelatedObjects } from '../screens/claims/related-objects.ts'
import { capacities, nodes, quotas, useCollections } from '../state/collections.ts'
import { QuotaEffects } from './quota-effects.tsx'
import { WriteDialog } from './write-dialog.tsx'

const PRESETS = [
  { label: '+25 %', factor: 1.25 },
  { label: '+50 %', factor: 1.5 },
  { label: '×2', factor: 2 },
]
const MIB = 1024 ** 2
const GIB = 1024 ** 3

/** Rounds up to whole GiB, or MiB for small volumes. */
const roundUp = (bytes: number): number => {
  const unit = bytes >= 4 * GIB ? GIB : MIB
  return Math.ceil(bytes / unit) * unit
}

export function ExpandDialog({ view, onClose }: { readonly view: ClaimView; onClose(): void }) {
  useCollections(capacities, nodes, quotas)
  const { claim } = view
  const { volume } = useRelatedObjects(view)
  const requestBytes = claim.requestBytes ?? 0
  const currentBytes = Math.max(requestBytes, claim.capacityBytes ?? 0)
  const text = useSignal(formatQuantity(roundUp(currentBytes * 1.25)))
  const size = readSize(text.value)
  const problem =
    'problem' in size
      ? size.problem
      : size.bytes <= currentBytes
        ? `The new size must be greater than ${formatBytes(currentBytes)}: a volume never shrinks.`
        : undefined
  const bytes = 'bytes' in size ? size.bytes : 0
  const growthBytes = Math.max(0, bytes - (claim.capacityBytes ?? 0))
  const effects = computeQuotaEffects(quotas.rows.values(), {
    namespace: claim.namespace,
    className: claim.className,
    bytes: Math.max(0, bytes - requestBytes),
    claims: 0,
  })
  const room = findFreeStorage(volume, claim.className, [...capacities.rows.values()], [...nodes.rows.values()])
  return (
    <WriteDialog
      title={`Expand ${claim.namespace}/${claim.name}`}
      write={'size' in size && problem === undefined ? sizeWrite(claim, size.size) : undefined}
      confirmLabel="Expand"
      doneText={`Requested ${'size' in size ? size.size : ''} for ${claim.namespace}/${claim.name}.`}
      onClose={onClose}
    >
      <label class="field">
        <span>New size</span>
        <input
          class="input"
          value={text.value}
          aria-invalid={problem !== undefined}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value
          }}
        />
      </label>
      <div class="chips">
        {PRESETS.map(({ label, factor }) => (
          <button
            key={label}
            type="button"
            class="chip"
            onClick={() => {
              text.value = formatQuantity(roundUp(currentBytes * factor))
            }}
          >
            {label}
          </button>
        ))}
      </div>
      {problem !== undefined && <p class="input-problem">{problem}</p>}
      <dl class="facts">
        <dt>Size</dt>
        <dd>
          {claim.capacity ?? claim.request} → {'size' in size ? size.size : '…'}{' '}
          {growthBytes > 0 && <span class="muted">(+{formatBytes(growthBytes)})</span>}
        </dd>
        <dt>Free where the volume is</dt>
        <dd>
          {room.is === 'known' ? (
            <span class={room.bytes < growthBytes ? 'status tone-bad' : 'status tone-ok'}>
              <StatusIcon tone={room.bytes < growthBytes ? 'bad' : 'ok'} />
              {formatBytes(room.bytes)} in {room.place}
            </span>
          ) : (
            <Unavailable reason={room.reason} />
          )}
        </dd>
        <dt>Quota</dt>
        <dd>
          <QuotaEffects effects={effects} />
        </dd>
        <dt>Pods</dt>
        <dd>
          {view.pods.length === 0
            ? 'No pod uses the claim; a file system grows when the next pod mounts it.'
            : `${view.pods.length === 1 ? '1 pod uses' : `${view.pods.length} pods use`} the claim; the volume grows while it is in use.`}
        </dd>
      </dl>
    </WriteDialog>
  )
}
