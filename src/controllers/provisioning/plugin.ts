// Turns a plugin, ours or a vendor's, into a Provisioner, and holds it to the rules: what it has not declared is
// refused before it is asked, what it returns must fit what was asked for, and what it throws becomes an answer.
// The plugin's side of the contract is plugin/contract.ts.
import { quantityToBytes } from '../../api/quantity.ts'
import type { PersistentVolume } from '../../api/types/volume.ts'
import type { Clock } from '../../base/clock.ts'
import { checkMade, existingVolume, type Wanted } from './plugin/check-made.ts'
import { checkPlugin } from './plugin/check-plugin.ts'
import type { Call, MadeVolume, ProvisionerPlugin } from './plugin/contract.ts'
import { meaningOf } from './plugin/failures.ts'
import { readRequest } from './plugin/read-request.ts'
import { withoutSecrets } from './plugin/wording.ts'
import type { Deleted, Provisioned, Provisioner, ProvisionRequest } from './provisioner.ts'

export interface PluginOptions {
  readonly clock: Clock
  /** A call that takes longer is told to give up; it is waited for all the same. Default 10 minutes. */
  readonly callTimeoutMs?: number
}

const CALL_TIMEOUT_MS = 600_000

export function provisionerOf(plugin: ProvisionerPlugin<any, any>, options: PluginOptions): Provisioner {
  checkPlugin(plugin)
  const timed = withTimeout(options)

  async function provision(
    given: ProvisionRequest,
    signal: AbortSignal,
    aboutToAsk: () => Promise<void> = async () => {},
  ): Promise<Provisioned> {
    const read = readRequest(plugin, given)
    if (read.is === 'ignored') return read
    if (read.is === 'refused') return refuse(given, read.because, signal, aboutToAsk)
    await aboutToAsk()
    const { request, secrets } = read
    const wanted = { request, secrets, selector: given.claim.spec?.selector }
    try {
      const made = await timed(signal, (call) => plugin.provision(request, call))
      return await accept(made, wanted, given.volumeName, signal)
    } catch (error) {
      return answerTo(error, secrets)
    }
  }

  /**
   * What is refused unasked may have been asked for under another class of the same name, by a process that died. If
   * the plugin finds a volume, that one is kept: it is what would stand there if the process had lived.
   */
  async function refuse(
    given: ProvisionRequest,
    because: string,
    signal: AbortSignal,
    aboutToAsk: () => Promise<void>,
  ): Promise<Provisioned> {
    const { claim, volumeName } = given
    const refused: Provisioned = { is: 'failed', how: 'infeasible', because }
    if (!plugin.find) return refused
    let found: MadeVolume | undefined
    try {
      const sizeBytes = quantityToBytes(claim.spec?.resources?.requests?.storage ?? '0')
      found = await timed(signal, async (call) => plugin.find?.({ volumeName, sizeBytes }, call))
    } catch (error) {
      return {
        is: 'failed',
        how: 'noChange',
        because: `${because} (Looking for what was made before: ${textOf(error)})`,
      }
    }
    if (!found) return refused
    await aboutToAsk()
    return accept(found, ANYTHING, volumeName, signal)
  }

  /** A volume that breaks the rules is a mistake in the plugin. It must not be used, and must not be left behind. */
  async function accept(
    made: MadeVolume,
    wanted: Wanted,
    volumeName: string,
    signal: AbortSignal,
  ): Promise<Provisioned> {
    const checked = checkMade(made, wanted)
    if (checked.is === 'right') return { is: 'made', volume: checked.volume }
    const because = `${plugin.name} made a volume that cannot be used: ${checked.because}. This is a mistake in the provisioner.`
    try {
      const { source, sizeBytes, labels = {}, annotations = {} } = made
      const volume = { name: volumeName, source, sizeBytes: BigInt(sizeBytes), labels, annotations }
      await timed(signal, (call) => plugin.delete(volume, call))
      return { is: 'failed', how: 'final', because: withoutSecrets(because, wanted.secrets) }
    } catch (error) {
      const both = `${because} Deleting it failed: ${textOf(error)}`
      return { is: 'failed', how: 'unfinished', because: withoutSecrets(both, wanted.secrets) }
    }
  }

  async function remove(given: Readonly<PersistentVolume>, signal: AbortSignal): Promise<Deleted> {
    const volume = existingVolume(given)
    try {
      if (plugin.owns && !plugin.owns(volume)) {
        const because = `The volume says that ${plugin.name} made it, but its source is none that ${plugin.name} makes. Nothing was touched; delete by hand what is behind it, then the volume.`
        return { is: 'failed', because }
      }
      await timed(signal, (call) => plugin.delete(volume, call))
      return { is: 'deleted' }
    } catch (error) {
      const because = textOf(error)
      return meaningOf(error) === 'ignored' ? { is: 'ignored', because } : { is: 'failed', because }
    }
  }

  return {
    name: plugin.name,
    provision,
    delete: remove,
    owns(volume) {
      try {
        return plugin.owns?.(existingVolume(volume)) ?? false
      } catch {
        return false // one that cannot be judged is not taken
      }
    },
  }
}

const ANYTHING: Wanted = {
  request: { sizeLimitBytes: undefined, allowedTopologies: [], mountOptions: [] },
  selector: undefined,
  secrets: [],
}

function answerTo(error: unknown, secrets: readonly string[]): Provisioned {
  const meaning = meaningOf(error)
  const because = withoutSecrets(textOf(error), secrets)
  return meaning === 'ignored' ? { is: 'ignored', because } : { is: 'failed', how: meaning, because }
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message || error.name : String(error))

/** Calls with a signal that fires with the caller's, or when the time is over. */
function withTimeout({ clock, callTimeoutMs = CALL_TIMEOUT_MS }: PluginOptions) {
  return async <T>(signal: AbortSignal, run: (call: Call) => Promise<T>): Promise<T> => {
    const call = new AbortController()
    const stop = () => call.abort(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    const cancelTimer = clock.after(callTimeoutMs, () =>
      call.abort(new Error(`it was not done within ${callTimeoutMs / 1_000} s`)),
    )
    try {
      return await run({ signal: call.signal })
    } finally {
      cancelTimer()
      signal.removeEventListener('abort', stop)
    }
  }
}
