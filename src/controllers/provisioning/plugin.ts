// Adapts a plugin, ours or a vendor's, to Provisioner and enforces its contract (plugin/contract.ts): requests that it has
// not declared are rejected before the call, results are checked against the request, and errors become results.

import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import type { Clock } from '../../base/clock.ts'
import { checkPlugin } from './plugin/check-plugin.ts'
import { checkResult, existingVolume, namesItsSource, readableParts, type Wanted } from './plugin/check-result.ts'
import type { AnyProvisionerPlugin, ProvisionedVolume } from './plugin/contract.ts'
import type { Meaning } from './plugin/failures.ts'
import { readRequest } from './plugin/read-request.ts'
import { CallFailed, timedCalls, type Wait } from './plugin/timed-call.ts'
import { thrownText, withoutSecrets } from './plugin/wording.ts'
import type { Deleted, Overdue, Provisioned, Provisioner, ProvisionRequest } from './provisioner.ts'

export interface PluginOptions {
  readonly clock: Clock
  /** After this time the signal of a call is aborted; the call is still awaited. Default 10 minutes. */
  readonly callTimeoutMs?: number
}

const CALL_TIMEOUT_MS = 600_000

export function provisionerOf(plugin: AnyProvisionerPlugin, options: PluginOptions): Provisioner {
  checkPlugin(plugin)
  const { clock, callTimeoutMs = CALL_TIMEOUT_MS } = options
  const timed = timedCalls({ clock, timeoutMs: callTimeoutMs, name: plugin.name })

  async function provision(
    given: ProvisionRequest,
    signal: AbortSignal,
    beforeCreate: () => Promise<void> = async () => {},
    onOverdue?: Overdue,
  ): Promise<Provisioned> {
    const read = readRequest(plugin, given)
    if (read.is === 'ignored') return read
    const wait = { signal, onOverdue }
    if (read.is === 'rejected') return reject(given, read.because, wait, beforeCreate)
    await beforeCreate()
    const { request, secrets } = read
    const wanted = { request, secrets, selector: given.claim.spec?.selector }
    try {
      const result = await timed(wait, (call) => plugin.provision(request, call))
      return await accept(result, wanted, given.volumeName, wait)
    } catch (error) {
      return resultOf(error, secrets)
    }
  }

  /**
   * A process that crashed may have requested the volume under an earlier class of the same name. If the plugin finds a
   * volume, it is kept, as it would have been without the crash.
   */
  async function reject(
    given: ProvisionRequest,
    because: string,
    wait: Wait,
    beforeCreate: () => Promise<void>,
  ): Promise<Provisioned> {
    const { claim, volumeName } = given
    if (!plugin.find) return { is: 'failed', how: 'infeasible', because, isNotCalled: true }
    let found: ProvisionedVolume | undefined
    try {
      const sizeBytes = quantityToBytes(claim.spec?.resources?.requests?.storage ?? '0')
      found = await timed(wait, async (call) => plugin.find?.({ volumeName, sizeBytes }, call))
    } catch (error) {
      return {
        is: 'failed',
        how: 'noChange',
        because: `${because} (Finding the volume of an earlier try: ${thrownText(error)})`,
      }
    }
    if (!found) return { is: 'failed', how: 'infeasible', because }
    await beforeCreate()
    return accept(found, ANYTHING, volumeName, wait)
  }

  /** A volume that violates the contract is a bug in the plugin. It must not be used and is deleted. */
  async function accept(
    result: ProvisionedVolume,
    wanted: Wanted,
    volumeName: string,
    wait: Wait,
  ): Promise<Provisioned> {
    if (!namesItsSource(result)) {
      // The result does not identify a volume, so only the same request can determine what exists.
      const because = `${plugin.name} returned no volume. This is a bug in the provisioner; whether it created one is unknown.`
      return { is: 'failed', how: 'unfinished', because }
    }
    const checked = checkResult(result, wanted)
    if (checked.is === 'valid') return { is: 'provisioned', volume: checked.volume }
    const because = `${plugin.name} created a volume that cannot be used: ${checked.because}. This is a bug in the provisioner.`
    try {
      await timed(wait, (call) => plugin.delete(readableParts(result, volumeName), call))
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
        const because = `The volume is annotated as provisioned by ${plugin.name}, but ${plugin.name} does not create volumes with such a source. Nothing was changed; delete its storage by hand, then the volume.`
        return { is: 'failed', because, isForeign: true }
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
        return false // a volume that the plugin cannot read is not its own
      }
    },
  }
}

const ANYTHING: Wanted = {
  request: { sizeLimitBytes: undefined, allowedTopologies: [], mountOptions: [] },
  selector: undefined,
  secrets: [],
}

function resultOf(error: unknown, secrets: readonly string[]): Provisioned {
  const how = meaning(error)
  const because = withoutSecrets(thrownText(error), secrets)
  return how === 'ignored' ? { is: 'ignored', because } : { is: 'failed', how, because }
}

const meaning = (error: unknown): Meaning => (error instanceof CallFailed ? error.meaning : 'unfinished')
