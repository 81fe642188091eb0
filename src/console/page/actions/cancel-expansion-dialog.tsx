// Cancels the expansion of a claim by lowering its request to its capacity.
import { sizeWrite } from '../logic/claim-actions.ts'
import type { ClaimView } from '../logic/claim-view.ts'
import { WriteDialog } from './write-dialog.tsx'

export function CancelExpansionDialog({ view: { claim }, onClose }: { readonly view: ClaimView; onClose(): void }) {
  return (
    <WriteDialog
      title={`Cancel the expansion of ${claim.namespace}/${claim.name}`}
      write={claim.capacity === undefined ? undefined : sizeWrite(claim, claim.capacity)}
      confirmLabel="Cancel expansion"
      doneText={`Lowered the request of ${claim.namespace}/${claim.name} to ${claim.capacity}.`}
      onClose={onClose}
    >
      <dl class="facts">
        <dt>Request</dt>
        <dd>
          {claim.request} → {claim.capacity}
        </dd>
        <dt>Effect</dt>
        <dd>
          The controllers stop expanding the volume. Quotas may still charge the larger size. Data is not affected. If
          the driver has already expanded the volume, it keeps the larger size.
        </dd>
      </dl>
    </WriteDialog>
  )
}
