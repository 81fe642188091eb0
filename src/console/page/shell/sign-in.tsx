// The page for a browser without a session: explains how to get the address with the token.
import { Command } from '../components/command.tsx'

export const SignIn = () => (
  <main class="signin">
    <div class="signin-card">
      <h1>Stowage console</h1>
      <p>
        This browser has no session, or its session has ended. Open the address that the console printed when it
        started; it contains the token:
      </p>
      <Command text="stowage console --open" />
      <p class="muted">
        The token is valid as long as the process runs. A running `stowage up` prints the address as the third line of
        its banner.
      </p>
    </div>
  </main>
)
