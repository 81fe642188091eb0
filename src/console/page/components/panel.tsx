// A titled panel of a screen, and a figure with a label inside it.
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import type { Tone } from '../logic/claim-status.ts'
import { StatusIcon } from './status.tsx'

interface PanelProps {
  readonly title: string
  readonly span?: 3 | 4 | 5 | 6 | 7 | 8
  /** Shown next to the title. */
  readonly note?: ComponentChildren
  readonly more?: ComponentChildren
  /** Whether the content reaches the border, as tables do. */
  readonly isFlush?: boolean
  readonly children: ComponentChildren
}

export function Panel({ title, span, note, more, isFlush, children }: PanelProps) {
  const id = useId()
  return (
    <section class={`panel${span ? ` span-${span}` : ''}`} aria-labelledby={id}>
      <div class="panel-head">
        <h2 id={id}>{title}</h2>
        {note !== undefined && <span class="muted">{note}</span>}
        {more !== undefined && <span class="more">{more}</span>}
      </div>
      <div class={`panel-body${isFlush ? ' panel-flush panel-scroll' : ''}`}>{children}</div>
    </section>
  )
}

interface FigureProps {
  readonly value: ComponentChildren
  readonly label: string
  readonly tone?: Tone
  readonly href?: string
}

export function Figure({ value, label, tone, href }: FigureProps) {
  const content = (
    <>
      <span class="figure-value">{value}</span>
      <span class="figure-label">
        {tone && <StatusIcon tone={tone} />}
        {label}
      </span>
    </>
  )
  return href === undefined ? (
    <span class="figure">{content}</span>
  ) : (
    <a class="figure" href={href}>
      {content}
    </a>
  )
}
