// The buttons of the drawer. An action that is not possible stays visible, disabled, with the reason. A user who may neither
// change nor delete the claim sees no buttons.
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { AttributesDialog } from '../../actions/attributes-dialog.tsx'
import { CancelExpansionDialog } from '../../actions/cancel-expansion-dialog.tsx'
import { DeleteDialog } from '../../actions/delete-dialog.tsx'
import { ExpandDialog } from '../../actions/expand-dialog.tsx'
import { retryNow } from '../../actions/retry.ts'
import { ACTION_LABELS, CLAIM_ACTIONS, type ClaimActionName, explainRefusal } from '../../logic/claim-actions.ts'
import type { ClaimView } from '../../logic/claim-view.ts'
import { attributesClasses, classes, useCollections } from '../../state/collections.ts'
import { isAllowed } from '../../state/data.ts'
import { addKeys } from '../../state/keys.ts'
import { showToast } from '../../state/toasts.ts'

export function ClaimActions({ view }: { readonly view: ClaimView }) {
  useCollections(classes, attributesClasses)
  const open = useSignal<ClaimActionName | undefined>(undefined)
  const { claim } = view
  const { namespace, name } = claim
  const storageClass = [...classes.rows.values()].find((row) => row.name === claim.className)
  const candidates = [...attributesClasses.rows.values()].filter(({ driver }) => driver === storageClass?.driver)
  const check = (verb: string) => isAllowed({ verb, group: '', resource: 'persistentvolumeclaims', namespace })
  const context = {
    claim,
    storageClass,
    attributesClasses: candidates,
    mayPatch: check('patch'),
    mayDelete: check('delete'),
    isReady: view.status.tone === 'ok' && view.why === undefined,
  }
  const start = (action: ClaimActionName) => {
    const reason = explainRefusal(action, context)
    if (reason !== undefined) showToast(reason, 'warn')
    else if (action === 'retry') void retryNow({ kind: 'pvc', namespace, name })
    else open.value = action
  }
  useEffect(() => addKeys({ e: () => start('expand') }))
  // Show no row of disabled buttons to a user without permissions, such as a viewer.
  if (context.mayPatch === false && context.mayDelete === false)
    return <p class="muted">You can view this claim, but not change it.</p>
  const close = () => {
    open.value = undefined
  }
  return (
    <>
      <fieldset class="drawer-actions" aria-label="Actions">
        {CLAIM_ACTIONS.map((action) => {
          const reason = explainRefusal(action, context)
          return (
            <button
              key={action}
              type="button"
              class={`button button-small ${action === 'delete' ? 'button-danger' : ''}`}
              aria-disabled={reason !== undefined}
              title={reason}
              onClick={() => start(action)}
            >
              {ACTION_LABELS[action]}
              {reason !== undefined && <span class="sr-only"> ({reason})</span>}
            </button>
          )
        })}
      </fieldset>
      {open.value === 'expand' && <ExpandDialog view={view} onClose={close} />}
      {open.value === 'attributes' && <AttributesDialog view={view} candidates={candidates} onClose={close} />}
      {open.value === 'cancel' && <CancelExpansionDialog view={view} onClose={close} />}
      {open.value === 'delete' && <DeleteDialog view={view} onClose={close} />}
    </>
  )
}
