// The dialog of an action that writes: it describes the change, shows the equivalent kubectl command and the result of
// a dry run, and has the button that applies it.
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { Command } from '../components/command.tsx'
import { Dialog } from '../components/dialog.tsx'
import { StatusIcon } from '../components/status.tsx'
import { messageOf, request } from '../state/api.ts'
import { socket } from '../state/collections.ts'
import { showToast } from '../state/toasts.ts'

/** A request to the API server. The page sends it as a dry run first. */
interface Write {
  readonly method: string
  readonly path: string
  readonly body?: object
  readonly contentType?: string
  readonly command: string
}

interface WriteDialogProps {
  readonly title: string
  /** Describes the change. */
  readonly children: ComponentChildren
  /** Undefined while the input is incomplete. */
  readonly write: Write | undefined
  readonly confirmLabel: string
  readonly isDangerous?: boolean
  /** What the user must still do, such as type the name. */
  readonly blocker?: string | undefined
  readonly doneText: string
  onClose(): void
}

type Check = { readonly is: 'none' | 'checking' | 'accepted' } | { readonly is: 'rejected'; readonly message: string }

const CHECK_DELAY_MS = 250

export function WriteDialog(props: WriteDialogProps) {
  const { title, children, write, confirmLabel, isDangerous, blocker, doneText, onClose } = props
  const check = useDryRun(write)
  const isRunning = useSignal(false)
  const problem = useSignal<string | undefined>(undefined)
  const run = async () => {
    if (!write || isRunning.value) return
    isRunning.value = true
    problem.value = undefined
    try {
      await send(write, {})
      showToast(doneText)
      onClose()
    } catch (error) {
      problem.value = messageOf(error)
    } finally {
      isRunning.value = false
    }
  }
  const isBlocked = !write || blocker !== undefined || isRunning.value || check.is === 'rejected'
  const foot = (
    <>
      <button type="button" class="button" onClick={onClose}>
        Close
      </button>
      <button
        type="button"
        class={`button ${isDangerous ? 'button-danger' : 'button-primary'}`}
        disabled={isBlocked}
        title={blocker}
        onClick={() => void run()}
      >
        {confirmLabel}
      </button>
    </>
  )
  return (
    <Dialog title={title} onClose={onClose} foot={foot}>
      {children}
      {write && (
        <div>
          <h3 class="label">Same as</h3>
          <Command text={write.command} />
        </div>
      )}
      <div aria-live="polite">
        {check.is === 'accepted' && problem.value === undefined && (
          <p class="status tone-ok">
            <StatusIcon tone="ok" />
            The server accepts the change (dry run).
          </p>
        )}
        {check.is === 'checking' && <p class="muted">Checking with the server (dry run)…</p>}
        {check.is === 'rejected' && <Rejection message={check.message} />}
        {problem.value !== undefined && <Rejection message={problem.value} />}
      </div>
      {socket.state.value.is === 'lost' && (
        <p class="note">
          <StatusIcon tone="warn" />
          The page is not up to date, because the connection is lost.
        </p>
      )}
    </Dialog>
  )
}

const Rejection = ({ message }: { readonly message: string }) => (
  <p class="note note-bad">
    <StatusIcon tone="bad" />
    <span>{message}</span>
  </p>
)

function useDryRun(write: Write | undefined): Check {
  const check = useSignal<Check>({ is: 'none' })
  const key = write && JSON.stringify([write.method, write.path, write.body])
  useEffect(() => {
    check.value = { is: write ? 'checking' : 'none' }
    if (!write) return
    const controller = new AbortController()
    const timer = setTimeout(() => {
      send(write, { isDryRun: true, signal: controller.signal }).then(
        () => {
          check.value = { is: 'accepted' }
        },
        (error: unknown) => {
          if (!controller.signal.aborted) check.value = { is: 'rejected', message: messageOf(error) }
        },
      )
    }, CHECK_DELAY_MS)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [key])
  return check.value
}

function send(
  { method, path, body, contentType }: Write,
  { isDryRun, signal }: { readonly isDryRun?: boolean; readonly signal?: AbortSignal },
): Promise<unknown> {
  const type = contentType ?? (method === 'PATCH' ? 'application/merge-patch+json' : 'application/json')
  return request(`${path}${isDryRun ? '?dryRun=All' : ''}`, {
    method,
    ...(body ? { body, contentType: type } : {}),
    ...(signal ? { signal } : {}),
  })
}
