// Adapts a plugin to Provisioner and enforces its contract (plugin/contract.ts): rejects requests for features that the plugin
// has not declared, checks results against the request, and converts errors to results.

import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import type { Clock } from '../../base/clock.ts'
import { createSecretMask, type SecretMask } from '../../csi/secret-mask.ts'
import { checkPlugin } from './plugin/check-plugin.ts'
import {
  checkResult,
  hasSource,
  type ResultExpectations,
  toDeletableVolume,
  toExistingVolume,
} from './plugin/check-result.ts'
import type { AnyProvisionerPlugin, ProvisionedVolume } from './plugin/contract.ts'
import type { FailureKind } from './plugin/failures.ts'
import { errorMessageOf } from './plugin/message-text.ts'
import { readRequest } from './plugin/read-request.ts'
import { CallError, type CallOptions, createTimedCaller } from './plugin/timed-call.ts'
import type { DeleteResult, OverdueCallback, Provisioner, ProvisionRequest, ProvisionResult } from './provisioner.ts'

export interface PluginOptions {
  readonly clock: Clock
  /** Time after which the signal of a call is aborted. The call is still awaited. Default: 10 minutes. */
  readonly callTimeoutMs?: number
}

const CALL_TIMEOUT_MS = 600_000

export function provisionerOf(plugin: AnyProvisionerPlugin, options: PluginOptions): Provisioner {
  checkPlugin(plugin)
  const { clock, callTimeoutMs = CALL_TIMEOUT_MS } = options
  /** The values of sensitive parameters of all requests. A plugin may quote them in a later error. */
  const secretMask = createSecretMask()
  const callPlugin = createTimedCaller({ clock, timeoutMs: callTimeoutMs, name: plugin.name })

  async function provision(
    claimRequest: ProvisionRequest,
    signal: AbortSignal,
    beforeCreate: () => Promise<void> = async () => {},
    onOverdue?: OverdueCallback,
  ): Promise<ProvisionResult> {
    const readResult = readRequest(plugin, claimRequest)
    if (readResult.is === 'ignored') return readResult
    const callOptions = { signal, onOverdue }
    if (readResult.is === 'rejected') return findOrReject(claimRequest, readResult.message, callOptions, beforeCreate)
    await beforeCreate()
    const { request, secrets } = readResult
    secretMask.add(secrets)
    const expectations = { request, secrets, selector: claimRequest.claim.spec?.selector }
    try {
      const result = await callPlugin(callOptions, (call) => plugin.provision(request, call))
      return await acceptResult(result, expectations, claimRequest.volumeName, callOptions)
    } catch (error) {
      return failureResult(error, secretMask)
    }
  }

  /**
   * Returns a failure, unless the plugin finds the volume of an earlier attempt. A crashed process may have requested it
   * with an earlier class of the same name.
   */
  async function findOrReject(
    claimRequest: ProvisionRequest,
    message: string,
    callOptions: CallOptions,
    beforeCreate: () => Promise<void>,
  ): Promise<ProvisionResult> {
    const { claim, volumeName } = claimRequest
    if (!plugin.find) return { is: 'failed', failure: 'infeasible', message, isNotCalled: true }
    let existingVolume: ProvisionedVolume | undefined
    try {
      const sizeBytes = quantityToBytes(claim.spec?.resources?.requests?.storage ?? '0')
      existingVolume = await callPlugin(callOptions, async (call) => plugin.find?.({ volumeName, sizeBytes }, call))
    } catch (error) {
      return {
        is: 'failed',
        failure: 'noChange',
        message: secretMask.mask(
          `${message} (Finding the volume of an earlier attempt failed: ${errorMessageOf(error)})`,
        ),
      }
    }
    if (!existingVolume) return { is: 'failed', failure: 'infeasible', message }
    await beforeCreate()
    return acceptResult(existingVolume, NO_EXPECTATIONS, volumeName, callOptions)
  }

  /** Returns the volume, or deletes it and returns a failure if it violates the contract. */
  async function acceptResult(
    result: ProvisionedVolume,
    expectations: ResultExpectations,
    volumeName: string,
    callOptions: CallOptions,
  ): Promise<ProvisionResult> {
    if (!hasSource(result)) {
      // The result does not identify a volume, so only a repeated request can determine whether one exists.
      const message = `${plugin.name} returned no volume. This is a bug in the provisioner; whether it created one is unknown.`
      return { is: 'failed', failure: 'unfinished', message }
    }
    const checkedResult = checkResult(result, expectations)
    if (checkedResult.is === 'valid') return { is: 'provisioned', volume: checkedResult.volume }
    const message = `${plugin.name} created a volume that cannot be used: ${checkedResult.message}. This is a bug in the provisioner.`
    try {
      await callPlugin(callOptions, (call) => plugin.delete(toDeletableVolume(result, volumeName), call))
      return { is: 'failed', failure: 'final', message: secretMask.mask(message) }
    } catch (error) {
      const deleteFailedMessage = `${message} Deleting it failed: ${errorMessageOf(error)}`
      return { is: 'failed', failure: 'unfinished', message: secretMask.mask(deleteFailedMessage) }
    }
  }

  async function deleteVolume(
    persistentVolume: Readonly<PersistentVolume>,
    signal: AbortSignal,
    onOverdue?: OverdueCallback,
  ): Promise<DeleteResult> {
    const volume = toExistingVolume(persistentVolume)
    try {
      if (plugin.owns && !plugin.owns(volume)) {
        const message = `The volume is annotated as provisioned by ${plugin.name}, but ${plugin.name} does not create volumes with such a source. Nothing was changed; back up its data if it is needed, delete its storage manually, then the volume.`
        return { is: 'failed', message, isForeign: true }
      }
      await callPlugin({ signal, onOverdue }, (call) => plugin.delete(volume, call))
      return { is: 'deleted' }
    } catch (error) {
      const message = secretMask.mask(errorMessageOf(error))
      return kindOf(error) === 'ignored' ? { is: 'ignored', message } : { is: 'failed', message }
    }
  }

  return {
    name: plugin.name,
    provision,
    delete: deleteVolume,
    owns(volume) {
      try {
        return plugin.owns?.(toExistingVolume(volume)) ?? false
      } catch {
        return false // the plugin cannot own a volume that it fails to read
      }
    },
  }
}

const NO_EXPECTATIONS: ResultExpectations = {
  request: { sizeLimitBytes: undefined, allowedTopologies: [], mountOptions: [] },
  selector: undefined,
  secrets: [],
}

function failureResult(error: unknown, secretMask: SecretMask): ProvisionResult {
  const failure = kindOf(error)
  const message = secretMask.mask(errorMessageOf(error))
  return failure === 'ignored' ? { is: 'ignored', message } : { is: 'failed', failure, message }
}

const kindOf = (error: unknown): FailureKind => (error instanceof CallError ? error.kind : 'unfinished')
