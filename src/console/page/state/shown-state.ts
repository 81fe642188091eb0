// Writes the state of the data to attributes of the root element, so that tests can wait until a change is shown:
//   data-rev         the newest revision that is shown
//   data-synced      whether the claims are complete
//   data-connection  connecting, open, lost or paused
import { effect } from '@preact/signals'
import { claims, shownRev, socket } from './collections.ts'

export function showState(root: HTMLElement): void {
  effect(() => {
    root.dataset.rev = shownRev.value
    root.dataset.synced = String(claims.state.value.is === 'synced')
    root.dataset.connection = socket.state.value.is
  })
}
