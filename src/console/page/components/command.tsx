// A button that copies a text, and a command line with this button.
import { useSignal } from '@preact/signals'
import { Icon } from './icon.tsx'

const COPIED_NOTE_MS = 1_500

export function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  const isCopied = useSignal(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    isCopied.value = true
    setTimeout(() => {
      isCopied.value = false
    }, COPIED_NOTE_MS)
  }
  return (
    <button
      type="button"
      class="button-icon"
      onClick={() => void copy()}
      aria-label={isCopied.value ? 'Copied' : label}
    >
      <Icon name={isCopied.value ? 'check' : 'copy'} />
    </button>
  )
}

export const Command = ({ text }: { readonly text: string }) => (
  <div class="command">
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long command scrolls, and the keyboard must reach it */}
    <pre tabIndex={0}>
      <code>{text}</code>
    </pre>
    <CopyButton text={text} label="Copy command" />
  </div>
)
