// The layout around the screens: navigation, banners, dialogs and messages.

import { isSignedIn, wasSignedIn } from '../state/api.ts'
import { socket } from '../state/collections.ts'
import { info } from '../state/data.ts'
import { usePolled } from '../state/polled.ts'
import { Announcer } from './announcer.tsx'
import { Banners } from './banners.tsx'
import { Help } from './help.tsx'
import { Nav } from './nav.tsx'
import { Screen } from './screen.tsx'
import { SignIn } from './sign-in.tsx'
import { Toasts } from './toasts.tsx'

export function Shell() {
  if (!isSignedIn.value && !wasSignedIn.value) return <SignIn />
  return <SignedInShell />
}

function SignedInShell() {
  usePolled(info)
  return (
    <div class={`shell${socket.state.value.is === 'lost' || !isSignedIn.value ? ' is-stale' : ''}`}>
      <button type="button" class="button skip" onClick={focusMain}>
        Skip to content
      </button>
      <Nav />
      <main class="main" id="main" tabIndex={-1}>
        <Banners />
        <Screen />
      </main>
      <Help />
      <Toasts />
      <Announcer />
    </div>
  )
}

function focusMain(): void {
  document.getElementById('main')?.focus()
}
