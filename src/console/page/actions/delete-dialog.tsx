// Deletes a claim. The dialog shows what is lost; if data is lost, the user types the claim's name.
import { useSignal } from '@preact/signals'
import { StatusIcon } from '../components/status.tsx'
import { deleteWrite } from '../logic/claim-actions.ts'
import type { ClaimView } from '../logic/claim-view.ts'
import { formatBytes } from '../logic/format.ts'
import { useRelatedObjects } from '../screens/claims/related-objects.ts'
import { WriteDialog } from './write-dialog.tsx'

export function DeleteDialog({ view, onClose }: { readonly view: ClaimView; onClose(): void }) {
  const { claim, pods, usage } = view
  const { volume } = useRelatedObjects(view)
  const typed = useSignal('')
  const isBound = claim.volumeName !== undefined
  // Assume that data is lost until the volume has been read.
  const losesData = isBound && volume?.reclaimPolicy !== 'Retain'
  return (
    <WriteDialog
      title={`Delete ${claim.namespace}/${claim.name}`}
      write={deleteWrite(claim)}
      confirmLabel="Delete"
      isDangerous
      blocker={losesData && typed.value !== claim.name ? 'Type the name of the claim first.' : undefined}
      doneText={`Requested the deletion of ${claim.namespace}/${claim.name}.`}
      onClose={onClose}
    >
      <p class={`note ${losesData ? 'note-bad' : 'note-plain'}`}>
        <StatusIcon tone={losesData ? 'bad' : 'ok'} />
        <span>
          {!isBound
            ? 'The claim has no volume. No data is lost.'
            : losesData
              ? `The volume ${claim.volumeName} and its data are deleted${volume ? `, because its reclaim policy is ${volume.reclaimPolicy}` : ', unless its reclaim policy is Retain'}.${usage?.usedBytes === undefined ? '' : ` ${formatBytes(usage.usedBytes)} are in use.`}`
              : `The volume ${claim.volumeName} and its data stay, because its reclaim policy is Retain. The volume becomes Released and must be reused or deleted by hand.`}
        </span>
      </p>
      {pods.length > 0 && (
        <p class="note">
          <StatusIcon tone="warn" />
          <span>
            {pods.length === 1 ? `The pod ${pods[0]!.name} uses` : `${pods.length} pods use`} the claim. The claim
            remains until no pod uses it.
          </span>
        </p>
      )}
      {losesData && (
        <label class="field">
          <span>Type {claim.name} to delete it with its data</span>
          <input
            class="input"
            value={typed.value}
            autocomplete="off"
            onInput={({ currentTarget }) => {
              typed.value = currentTarget.value
            }}
          />
        </label>
      )}
    </WriteDialog>
  )
}
