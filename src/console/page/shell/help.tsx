// The dialog with the page's keys.
import { Dialog } from '../components/dialog.tsx'
import { GO_KEYS, hasSingleKeys, isHelpOpen } from '../state/keys.ts'
import { SCREEN_TITLES } from './nav.tsx'

const KEYS: readonly (readonly [string, string])[] = [
  ['/', 'Search'],
  ['j  k', 'Next and previous row'],
  ['Enter', 'Open the row'],
  ['Esc', 'Close'],
  ['e', 'Expand the open claim'],
  ['t  v  y', 'Timeline, events and YAML of the open claim'],
  ['?', 'This help'],
]

export function Help() {
  if (!isHelpOpen.value) return null
  const close = () => {
    isHelpOpen.value = false
  }
  const goKeys = Object.entries(GO_KEYS).map(([key, screen]) => [`g ${key}`, SCREEN_TITLES[screen]] as const)
  return (
    <Dialog title="Keyboard shortcuts" onClose={close}>
      <dl class="keys">
        {[...KEYS, ...goKeys].map(([keys, text]) => (
          <>
            <dt>
              {keys.split(/\s+/).map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </>
        ))}
      </dl>
      <label>
        <input
          type="checkbox"
          checked={hasSingleKeys.value}
          onChange={({ currentTarget }) => {
            hasSingleKeys.value = currentTarget.checked
          }}
        />{' '}
        Single keys are active
      </label>
    </Dialog>
  )
}
