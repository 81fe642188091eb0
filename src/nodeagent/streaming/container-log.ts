// Opens the requested log of a container, and follows it if requested. The messages for a container without a log match the
// kubelet's.
import type { Stored } from '../../api/kind.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { ContainerLog, Containers } from '../commands/containers.ts'
import { type FollowedLog, type LogOptions, readLog } from '../commands/logs/read-log.ts'

export interface LogRequest {
  readonly container: string
  readonly follow: boolean
  readonly previous: boolean
  readonly options: LogOptions
}

export class NoLogError extends Error {
  override readonly name = 'NoLogError'
}

/** Returns the log's content. Throws NoLogError if the container has none. */
export async function openContainerLog(
  containers: Pick<Containers, 'findLog'>,
  pod: Readonly<Stored<Pod>>,
  { container, follow, previous, options }: LogRequest,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<AsyncIterable<Buffer>> {
  const log = await containers.findLog(pod, container, { previous })
  if (!log) throw new NoLogError(explainMissingLog(pod, container, previous))
  if (await log.hasEnded()) await log.capture?.drain()
  return readLog(log.path, options, { signal, followed: follow ? followRun(log, clock) : undefined })
}

/**
 * Follows until the command has exited and its output is in the log. Checks for the exit after a pause, because a process that
 * the command started in the background may keep the pipes open.
 */
function followRun({ capture, hasEnded }: ContainerLog, clock: Clock): FollowedLog {
  let isComplete = capture?.isEnded ?? true
  return {
    isComplete: () => isComplete,
    async changed(signal) {
      const pause = new AbortController()
      const removeListener = capture!.onChange(() => pause.abort())
      try {
        await clock.sleep(END_CHECK_INTERVAL_MS, AbortSignal.any([signal, pause.signal])).catch(() => {})
        signal.throwIfAborted()
        if (!pause.signal.aborted && (await hasEnded())) {
          await capture!.drain()
          isComplete = true
        }
        if (capture!.isEnded) isComplete = true
      } finally {
        removeListener()
      }
    },
  }
}

const END_CHECK_INTERVAL_MS = 500

function explainMissingLog({ metadata, status }: Readonly<Stored<Pod>>, container: string, previous: boolean): string {
  const [c, p] = [JSON.stringify(container), JSON.stringify(metadata.name)]
  if (previous) return `previous terminated container ${c} in pod ${p} not found`
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
  const found = statuses.find(({ name }) => name === container)
  if (!found) return `container ${c} in pod ${p} is not available`
  if (found.state?.terminated) return `container ${c} in pod ${p} is terminated`
  const reason = found.state?.waiting?.reason
  return reason
    ? `container ${c} in pod ${p} is waiting to start: ${WAITING_TEXTS[reason] ?? reason}`
    : `container ${c} in pod ${p} is waiting to start - no logs yet`
}

const WAITING_TEXTS: Readonly<Record<string, string>> = {
  ErrImagePull: "image can't be pulled",
  ImagePullBackOff: 'trying and failing to pull image',
}
