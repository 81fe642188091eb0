// Shows a status as a word, a shape and a color, so that it does not depend on color alone.
import type { StatusWord, Tone } from '../logic/claim-status.ts'

const SHAPES: Readonly<Record<Tone, preact.JSX.Element>> = {
  ok: <path d="M6 1a5 5 0 1 1 0 10A5 5 0 0 1 6 1Zm-2.3 5.1 1.7 1.7 3-3.5" class="shape-ring" />,
  busy: <path d="M6 1a5 5 0 1 0 5 5M6 1a5 5 0 0 1 5 5H6Z" class="shape-half" />,
  wait: <path d="M6 1.2a4.8 4.8 0 1 1 0 9.6 4.8 4.8 0 0 1 0-9.6Z" class="shape-ring" />,
  warn: <path d="M6 1.2 11.2 10.6H.8ZM6 4.4v3M6 9v.1" class="shape-ring" />,
  bad: <path d="M1.5 1.5h9v9h-9ZM4 4l4 4M8 4 4 8" class="shape-ring" />,
}

export const StatusIcon = ({ tone }: { readonly tone: Tone }) => (
  <svg class={`shape tone-${tone}`} viewBox="0 0 12 12" aria-hidden="true" focusable="false">
    {SHAPES[tone]}
  </svg>
)

export const Status = ({ word, tone }: StatusWord) => (
  <span class={`status tone-${tone}`}>
    <StatusIcon tone={tone} />
    {word}
  </span>
)
