// Shows one operation: why it has not finished, the time of its next attempt, and the buttons to retry it now or to cancel an
// expansion.
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { CancelExpansionDialog } from '../../actions/cancel-expansion-dialog.tsx'
import { retryNow } from '../../actions/retry.ts'
import { Age, Until } from '../../components/age.tsx'
import { Icon } from '../../components/icon.tsx'
import { Status } from '../../components/status.tsx'
import { explainRefusal } from '../../logic/claim-actions.ts'
import { retryKindOf, statusOfOperation } from '../../logic/operations.ts'
import { linkTo } from '../../logic/url.ts'
import type { OperationRow } from '../../rows/cluster.ts'
import { claimViewsVersion, useClaimTable, viewOfClaim } from '../../state/claim-table.ts'
import { isAllowed } from '../../state/data.ts'
import { addKeys } from '../../state/keys.ts'

interface OperationDrawerProps {
  /** Undefined if the operation has ended. */
  readonly operation: OperationRow | undefined
  onClose(): void
}

const RESOURCES: Readonly<Record<string, { readonly group: string; readonly resource: string }>> = {
  PersistentVolumeClaim: { group: '', resource: 'persistentvolumeclaims' },
  PersistentVolume: { group: '', resource: 'persistentvolumes' },
  Pod: { group: '', resource: 'pods' },
  Node: { group: '', resource: 'nodes' },
  VolumeAttachment: { group: 'storage.k8s.io', resource: 'volumeattachments' },
  VolumeAttributesClass: { group: 'storage.k8s.io', resource: 'volumeattributesclasses' },
}

export function OperationDrawer({ operation: current, onClose }: OperationDrawerProps) {
  const last = useRef<OperationRow | undefined>(undefined)
  const title = useRef<HTMLHeadingElement>(null)
  if (current) last.current = current
  const operation = last.current
  useEffect(() => {
    title.current?.focus()
    return addKeys({ Escape: onClose })
  }, [])
  return (
    <section class="drawer" aria-label="Operation">
      <div class="drawer-head">
        <div class="drawer-title">
          <h2 ref={title} tabIndex={-1}>
            {operation ? `${operation.operation} ${operation.objectName}` : 'Operation'}
          </h2>
          {operation && current && <Status {...statusOfOperation(operation)} />}
          <button type="button" class="button-icon" aria-label="Close operation" onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
        {!current && (
          <p class="note note-plain" role="status">
            The operation is done, or no component works on it any more.
          </p>
        )}
        {operation && current && <Actions operation={operation} />}
      </div>
      {operation && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the details scroll, and the keyboard must reach them
        <div class="drawer-body" tabIndex={0}>
          <Facts operation={operation} />
        </div>
      )}
    </section>
  )
}

function Actions({ operation }: { readonly operation: OperationRow }) {
  useClaimTable()
  void claimViewsVersion.value
  const isCancelOpen = useSignal(false)
  const { objectKind, objectName, namespace } = operation
  const resource = RESOURCES[objectKind]
  const kind = retryKindOf(operation)
  const mayPatch = resource && isAllowed({ verb: 'patch', ...resource, ...(namespace ? { namespace } : {}) })
  const noRetry = !kind
    ? `A retry cannot be requested for objects of kind ${objectKind}.`
    : mayPatch === undefined
      ? 'Your permissions are being checked.'
      : mayPatch
        ? undefined
        : `You need permission to patch ${resource!.resource}.`
  const view = objectKind === 'PersistentVolumeClaim' ? viewOfClaim(`${namespace}/${objectName}`) : undefined
  const noCancel = !view
    ? 'Only the expansion of a claim can be cancelled.'
    : explainRefusal('cancel', {
        claim: view.claim,
        storageClass: undefined,
        attributesClasses: [],
        mayPatch,
        mayDelete: false,
        isReady: false,
      })
  return (
    <fieldset class="drawer-actions" aria-label="Actions">
      <button
        type="button"
        class="button button-small"
        disabled={noRetry !== undefined}
        title={noRetry}
        onClick={() => void retryNow({ kind: kind!, name: objectName, ...(namespace ? { namespace } : {}) })}
      >
        Retry now
      </button>
      <button
        type="button"
        class="button button-small"
        disabled={noCancel !== undefined}
        title={noCancel}
        onClick={() => {
          isCancelOpen.value = true
        }}
      >
        Cancel expansion…
      </button>
      {isCancelOpen.value && view && (
        <CancelExpansionDialog
          view={view}
          onClose={() => {
            isCancelOpen.value = false
          }}
        />
      )}
    </fieldset>
  )
}

const Facts = ({ operation }: { readonly operation: OperationRow }) => (
  <dl class="facts">
    <dt>Object</dt>
    <dd>
      {operation.objectKind === 'PersistentVolumeClaim' ? (
        <a href={linkTo('claims', { claim: `${operation.namespace}/${operation.objectName}` })}>
          {operation.namespace}/{operation.objectName}
        </a>
      ) : (
        `${operation.objectKind} ${operation.namespace ? `${operation.namespace}/` : ''}${operation.objectName}`
      )}
    </dd>
    <dt>Component</dt>
    <dd>{operation.component}</dd>
    <dt>Reason</dt>
    <dd>{operation.reason || '–'}</dd>
    <dt>Message</dt>
    <dd>{operation.message || '–'}</dd>
    <dt>Attempts</dt>
    <dd>{operation.attempts}</dd>
    <dt>Next attempt</dt>
    <dd>{operation.nextMs === undefined ? 'when something changes' : <Until timeMs={operation.nextMs} />}</dd>
    <dt>Waits for</dt>
    <dd>{operation.waitsFor ?? '–'}</dd>
    <dt>Last response</dt>
    <dd>
      {operation.lastResponse === undefined
        ? '–'
        : `${operation.lastResponse} from ${operation.driver ?? 'the driver'}`}
    </dd>
    <dt>Started</dt>
    <dd>
      <Age timeMs={operation.startedMs} /> ago
    </dd>
  </dl>
)
