// The actions for a lost node: mark it as out of service, and put it back in service when it returns.
import { useSignal } from '@preact/signals'
import { WriteDialog } from '../../actions/write-dialog.tsx'
import { StatusIcon } from '../../components/status.tsx'
import { pluralize } from '../../logic/format.ts'
import { backInServiceWrite, explainRefusal, isOutOfService, outOfServiceWrite } from '../../logic/node-actions.ts'
import type { NodeView } from '../../logic/node-view.ts'
import { linkTo } from '../../logic/url.ts'
import { isAllowed } from '../../state/data.ts'

export function NodeActions({ view }: { readonly view: NodeView }) {
  const isOpen = useSignal(false)
  const { node } = view
  const mayPatch = isAllowed({ verb: 'patch', group: '', resource: 'nodes' })
  const isOut = isOutOfService(node)
  const reason = explainRefusal(node, mayPatch)
  const close = () => {
    isOpen.value = false
  }
  return (
    <>
      <div class="drawer-actions">
        {(mayPatch || node.ready !== 'True') && (
          <button
            type="button"
            class="button button-small"
            disabled={reason !== undefined}
            title={reason}
            onClick={() => {
              isOpen.value = true
            }}
          >
            {isOut ? 'Back in service…' : 'Mark as out of service…'}
          </button>
        )}
        <a class="button button-small" href={linkTo('claims', { node: node.name })}>
          Claims of this node
        </a>
      </div>
      {isOpen.value && (isOut ? <BackDialog view={view} onClose={close} /> : <OutDialog view={view} onClose={close} />)}
    </>
  )
}

interface NodeDialogProps {
  readonly view: NodeView
  onClose(): void
}

function OutDialog({ view: { node, claims }, onClose }: NodeDialogProps) {
  const typed = useSignal('')
  const pods = new Set(
    claims.flatMap((claim) => claim.pods.filter((pod) => pod.node === node.name).map(({ uid }) => uid)),
  )
  return (
    <WriteDialog
      title={`Mark ${node.name} as out of service`}
      write={outOfServiceWrite(node)}
      confirmLabel="Mark as out of service"
      isDangerous
      blocker={typed.value === node.name ? undefined : 'Type the name of the node first.'}
      doneText={`Marked ${node.name} as out of service.`}
      onClose={onClose}
    >
      <p class="note note-bad">
        <StatusIcon tone="bad" />
        <span>
          Do this only if the machine is off or cut off from its storage. If it still runs, two nodes write to the same
          volume, and its data is damaged.
        </span>
      </p>
      <dl class="facts">
        <dt>Pods</dt>
        <dd>Deletes {pluralize(pods.size, 'pod')} with claims immediately, without waiting for the node.</dd>
        <dt>Volumes</dt>
        <dd>
          {pluralize(claims.length, 'volume')}. Attached volumes are force-detached, so that other nodes can use them.
        </dd>
        <dt>Local volumes</dt>
        <dd>Volumes that only this node can reach stay unavailable until the node is back.</dd>
      </dl>
      <label class="field">
        <span>Type {node.name} to confirm that the machine is off</span>
        <input
          class="input"
          value={typed.value}
          autocomplete="off"
          onInput={({ currentTarget }) => {
            typed.value = currentTarget.value
          }}
        />
      </label>
    </WriteDialog>
  )
}

const BackDialog = ({ view: { node }, onClose }: NodeDialogProps) => (
  <WriteDialog
    title={`Put ${node.name} back in service`}
    write={backInServiceWrite(node)}
    confirmLabel="Back in service"
    doneText={`Removed the out-of-service taint from ${node.name}.`}
    onClose={onClose}
  >
    <p>The taint is removed. Pods can run on the node again once it is ready.</p>
  </WriteDialog>
)
