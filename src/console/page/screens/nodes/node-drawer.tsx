// One node: conditions, drivers, IO of its volumes, and what to do if it is lost.
import { useEffect, useRef } from 'preact/hooks'
import { Icon } from '../../components/icon.tsx'
import { Status } from '../../components/status.tsx'
import type { NodeView } from '../../logic/node-view.ts'
import { addKeys } from '../../state/keys.ts'
import { NodeActions } from './node-actions.tsx'
import { NodeIo } from './node-io.tsx'

interface NodeDrawerProps {
  readonly name: string
  readonly view: NodeView | undefined
  onClose(): void
}

export function NodeDrawer({ name, view, onClose }: NodeDrawerProps) {
  const title = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    title.current?.focus()
    return addKeys({ Escape: onClose })
  }, [])
  return (
    <section class="drawer" aria-label={`Node ${name}`}>
      <div class="drawer-head">
        <div class="drawer-title">
          <h2 ref={title} tabIndex={-1}>
            {name}
          </h2>
          {view && <Status {...view.status} />}
          <button type="button" class="button-icon" aria-label="Close node" onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
        {!view && <p class="note">This node no longer exists.</p>}
        {view && <NodeActions view={view} />}
      </div>
      {view && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the details scroll, and the keyboard must reach them
        <div class="drawer-body" tabIndex={0}>
          <div class="section">
            <NodeFacts view={view} />
          </div>
          <div class="section">
            <NodeIo view={view} />
          </div>
        </div>
      )}
    </section>
  )
}

function NodeFacts({ view: { node, drivers } }: { readonly view: NodeView }) {
  return (
    <dl class="facts">
      <dt>Ready</dt>
      <dd>
        {node.ready}
        {node.readyReason !== undefined && `, ${node.readyReason}`}
        {node.readyMessage !== undefined && `: ${node.readyMessage}`}
      </dd>
      {node.otherConditions.length > 0 && (
        <>
          <dt>Conditions</dt>
          <dd>{node.otherConditions.join(', ')}</dd>
        </>
      )}
      {node.taints.length > 0 && (
        <>
          <dt>Taints</dt>
          <dd>
            {node.taints.map(({ key, value, effect }) => `${key}${value ? `=${value}` : ''}:${effect}`).join(', ')}
          </dd>
        </>
      )}
      <dt>Drivers</dt>
      <dd>
        {drivers === undefined
          ? 'unknown: the node has no CSINode object'
          : drivers.length === 0
            ? 'none registered'
            : drivers.map(({ name, nodeId, usedSlots, slots }) => (
                <div key={name}>
                  {name}{' '}
                  <span class="muted">
                    as {nodeId}, {slots === undefined ? 'no volume limit' : `${usedSlots} of ${slots} slots used`}
                  </span>
                </div>
              ))}
      </dd>
    </dl>
  )
}
