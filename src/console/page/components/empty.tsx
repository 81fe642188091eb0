// What a screen shows instead of rows: that no objects exist or match, that the list is loading, or why the list could not be
// read. ListCount shows the number of objects.
import type { ComponentChildren } from 'preact'
import type { CollectionState } from '../state/collection.ts'
import { Command } from './command.tsx'
import { StatusIcon } from './status.tsx'

interface EmptyProps {
  readonly title: string
  readonly children?: ComponentChildren
  readonly command?: string
}

export const Empty = ({ title, children, command }: EmptyProps) => (
  <div class="empty">
    <p class="empty-title">{title}</p>
    {children}
    {command !== undefined && <Command text={command} />}
  </div>
)

/** Shows why a list could not be read or updated, with the server's message. */
export function ListError({ what, state }: { readonly what: string; readonly state: CollectionState }) {
  const { error } = state
  if (!error) return null
  return (
    <div class="list-error" role="note">
      <StatusIcon tone="warn" />
      <span>
        <strong>{what} unavailable.</strong>{' '}
        {error.code === 404 ? 'This API server does not serve this kind of object.' : error.message}
      </span>
    </div>
  )
}

/** Placeholder rows while the first list is loading. */
export const Skeleton = ({ rows = 8 }: { readonly rows?: number }) => (
  <div class="skeleton" aria-hidden="true">
    {Array.from({ length: rows }, (_, index) => (
      <span key={index} />
    ))}
  </div>
)

/** The number of objects next to a title. Omitted for a list that could not be read, because 0 would be wrong. */
export const ListCount = ({
  state,
  children,
}: {
  readonly state: CollectionState
  readonly children: ComponentChildren
}) => (state.is === 'failed' ? null : <span class="muted">{children}</span>)
