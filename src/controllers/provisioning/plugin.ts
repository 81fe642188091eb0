// Turns a plugin, ours or a vendor's, into a Provisioner, and holds it to the rules: what it has not declared is
// refused before it is asked, what it returns must fit what was asked for, and what it throws becomes an answer.
// The plugin's side of the contract is plugin/contract.ts.

import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import type { Clock } from '../../base/clock.ts'
import { asFarAsReadable, checkMade, existingVolume, namesItsSource, type Wanted } from './plugin/check-made.ts'
import { checkPlugin } from './plugin/check-plugin.ts'
import type { MadeVolume, ProvisionerPlugin } from './plugin/contract.ts'
import type { Meaning } from './plugin/failures.ts'
import { readRequest } from './plugin/read-request.ts'
import { CallFailed, timedCalls, type Wait } from './plugin/timed-call.ts'
import { thrownText, withoutSecrets } from './plugin/wording.ts'
import type { Deleted, Overdue, Provisioned, Provisioner, ProvisionRequest } from './provisioner.ts'

export interface PluginOptions {
  readonly clock: Clock
  /** A call that takes longer is told to give up; it is waited for all the same. Default 10 minutes. */
  readonly callTimeoutMs?: number
}

const CALL_TIMEOUT_MS = 600_000

export function provisionerOf(plugin: ProvisionerPlugin<any, any>, options: PluginOptions): Provisioner {
  checkPlugin(plugin)
  const { clock, callTimeoutMs = CALL_TIMEOUT_MS } = options
  const timed = timedCalls({ clock, timeoutMs: callTimeoutMs, name: plugin.name })

  async function provision(
    given: ProvisionRequest,
    signal: AbortSignal,
    aboutToAsk: () => Promise<void> = async () => {},
    onOverdue?: Overdue,
  ): Promise<Provisioned> {
    const read = readRequest(plugin, given)
    if (read.is === 'ignored') return read
    const wait = { signal, onOverdue }
    if (read.is === 'refused') return refuse(given, read.because, wait, aboutToAsk)
    await aboutToAsk()
    const { request, secrets } = read
    const wanted = { request, secrets, selector: given.claim.spec?.selector }
    try {
      const made = await timed(wait, (call) => plugin.provision(request, call))
      return await accept(made, wanted, given.volumeName, wait)
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
    wait: Wait,
    aboutToAsk: () => Promise<void>,
  ): Promise<Provisioned> {
    const { claim, volumeName } = given
    if (!plugin.find) return { is: 'failed', how: 'infeasible', because, isUnasked: true }
    let found: MadeVolume | undefined
    try {
      const sizeBytes = quantityToBytes(claim.spec?.resources?.requests?.storage ?? '0')
      found = await timed(wait, async (call) => plugin.find?.({ volumeName, sizeBytes }, call))
    } catch (error) {
      return {
        is: 'failed',
        how: 'noChange',
        because: `${because} (Looking for what was made before: ${thrownText(error)})`,
      }
    }
    if (!found) return { is: 'failed', how: 'infeasible', because }
    await aboutToAsk()
    return accept(found, ANYTHING, volumeName, wait)
  }

  /** A volume that breaks the rules is a mistake in the plugin. It must not be used, and must not be left behind. */
  async function accept(made: MadeVolume, wanted: Wanted, volumeName: string, wait: Wait): Promise<Provisioned> {
    if (!namesItsSource(made)) {
      // Nothing says what to delete, so only the same request can find out what there is.
      const because = `${plugin.name} returned no volume. This is a mistake in the provisioner; whether it made one is not known.`
      return { is: 'failed', how: 'unfinished', because }
    }
    const checked = checkMade(made, wanted)
    if (checked.is === 'right') return { is: 'made', volume: checked.volume }
    const because = `${plugin.name} made a volume that cannot be used: ${checked.because}. This is a mistake in the provisioner.`
    try {
      await timed(wait, (call) => plugin.delete(asFarAsReadable(made, volumeName), call))
      return { is: 'failed', how: 'final', because: withoutSecrets(because, wanted.secrets) }
    } catch (error) {
      const both = `${because} Deleting it failed: ${thrownText(error)}`
      return { is: 'failed', how: 'unfinished', because: withoutSecrets(both, wanted.secrets) }
    }
  }

  async function remove(given: Readonly<PersistentVolume>, signal: AbortSignal, onOverdue?: Overdue): Promise<Deleted> {
    const volume = existingVolume(given)
    try {
      if (plugin.owns && !plugin.owns(volume)) {
        const because = `The volume says that ${plugin.name} made it, but its source is none that ${plugin.name} makes. Nothing was touched; delete by hand what is behind it, then the volume.`
        return { is: 'failed', because, isNotOurs: true }
      }
      await timed({ signal, onOverdue }, (call) => plugin.delete(volume, call))
      return { is: 'deleted' }
    } catch (error) {
      const because = thrownText(error)
      return meaning(error) === 'ignored' ? { is: 'ignored', because } : { is: 'failed', because }
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
  const how = meaning(error)
  const because = withoutSecrets(thrownText(error), secrets)
  return how === 'ignored' ? { is: 'ignored', because } : { is: 'failed', how, because }
}

const meaning = (error: unknown): Meaning => (error instanceof CallFailed ? error.meaning : 'unfinished')
