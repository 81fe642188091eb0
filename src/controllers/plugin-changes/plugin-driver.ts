// Adapts a plugin's functions `expand` and `modify` to the CSI driver interface, so that the controllers for CSI drivers
// also change the plugin's volumes. A volume's ID is the name of its PersistentVolume.
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { CsiError, type CsiFailureCode } from '../../csi/index.ts'
import type { ExpansionDriver } from '../expanding/index.ts'
import type { ModificationDriver } from '../modifying/index.ts'
import { toExistingVolume } from '../provisioning/plugin/check-result.ts'
import type { AnyProvisionerPlugin, Call, ExistingVolume } from '../provisioning/plugin/contract.ts'
import type { FailureKind } from '../provisioning/plugin/failures.ts'
import { errorMessageOf, quoteNames, truncate } from '../provisioning/plugin/message-text.ts'
import type { ParameterDeclarations } from '../provisioning/plugin/parameter.ts'
import { CallError, createTimedCaller } from '../provisioning/plugin/timed-call.ts'

interface PluginDriverDeps {
  readonly clock: Clock
  readonly log: Logger
  /** Time after which the signal of a call is aborted. The call is still awaited. */
  readonly callTimeoutMs: number
  findVolume(name: string): Readonly<PersistentVolume> | undefined
}

/** The code of each failure. After `unfinished`, `noChange` and `ignored` the call is repeated until its outcome is known. */
const CODES: Readonly<Record<FailureKind, CsiFailureCode>> = {
  infeasible: 'INVALID_ARGUMENT',
  final: 'INTERNAL',
  reschedule: 'INTERNAL',
  noChange: 'UNAVAILABLE',
  unfinished: 'UNAVAILABLE',
  ignored: 'UNAVAILABLE',
}

/** An error of a plugin. Events contain its message alone, because no RPC has failed. */
class PluginError extends CsiError {
  override get rpcText(): string {
    return this.message
  }
}

export function createPluginDriver(
  plugin: AnyProvisionerPlugin,
  { clock, log, callTimeoutMs, findVolume }: PluginDriverDeps,
): ExpansionDriver & ModificationDriver {
  const callPlugin = createTimedCaller({ clock, timeoutMs: callTimeoutMs, name: plugin.name })

  async function runCall<T>(
    volumeName: string,
    signal: AbortSignal = new AbortController().signal,
    invoke: (volume: ExistingVolume, call: Call) => Promise<T>,
  ): Promise<T> {
    const volume = findVolume(volumeName)
    if (!volume) throw new PluginError('UNAVAILABLE', `The volume ${volumeName} is not in the cache yet.`)
    const onOverdue = (message: string) => log.warn({ volume: volumeName }, message)
    try {
      return await callPlugin({ signal, onOverdue }, (call) => invoke(toExistingVolume(volume), call))
    } catch (error) {
      const kind = error instanceof CallError ? error.kind : 'unfinished'
      throw new PluginError(CODES[kind], errorMessageOf(error))
    }
  }

  return {
    controller: {
      async controllerExpandVolume({ volumeId, capacityRange }, { signal } = {}) {
        const sizeBytes = capacityRange.requiredBytes
        const result = await runCall(volumeId, signal, async (volume, call) =>
          plugin.expand?.({ volume, sizeBytes }, call),
        )
        if (!isSize(result?.sizeBytes)) {
          const message = `${plugin.name} returned no size from "expand". This is a bug in the provisioner.`
          throw new PluginError('UNAVAILABLE', message)
        }
        return { capacityBytes: BigInt(result.sizeBytes), nodeExpansionRequired: false }
      },
      async controllerModifyVolume({ volumeId, mutableParameters }, { signal } = {}) {
        const attributes = readAttributes(plugin, mutableParameters)
        await runCall(volumeId, signal, async (volume, call) => plugin.modify?.({ volume, attributes }, call))
      },
    },
  }
}

const isSize = (value: unknown): value is bigint | number =>
  (typeof value === 'bigint' || Number.isSafeInteger(value)) && (value as bigint | number) > 0

/** Throws an error with the code INVALID_ARGUMENT for an attribute that is not declared or has an invalid value. */
function readAttributes(
  { name, attributes = {} }: AnyProvisionerPlugin,
  texts: Readonly<Record<string, string>>,
): Readonly<Record<string, unknown>> {
  const declarations = attributes as ParameterDeclarations
  const values = Object.entries(texts).map(([key, text]) => {
    const declaration = Object.hasOwn(declarations, key) ? declarations[key] : undefined
    if (!declaration) {
      const supportedNames = Object.keys(declarations)
      throw new PluginError(
        'INVALID_ARGUMENT',
        `${name} does not support the attribute ${quoteNames([key])}. The provisioner supports ${quoteNames(supportedNames)}.`,
      )
    }
    const value = declaration.parse(text)
    if (value === undefined) {
      const valueText = JSON.stringify(truncate(text))
      throw new PluginError(
        'INVALID_ARGUMENT',
        `The attribute "${key}" (${declaration.doc}) has the value ${valueText}; expected ${declaration.expected}.`,
      )
    }
    return [key, value] as const
  })
  return Object.fromEntries(values)
}
