// The conformance test of provisioners. It runs the plugin in a test cluster and throws if the plugin breaks a rule.
import { isDeepStrictEqual } from 'node:util'
import type {
  AnyProvisionerPlugin,
  Call,
  ProvisionedVolume,
  VolumeSources,
} from '../controllers/provisioning/plugin/contract.ts'
import { type FailureKind, failureKindOf } from '../controllers/provisioning/plugin/failures.ts'
import { errorMessageOf } from '../controllers/provisioning/plugin/message-text.ts'
import type { ParameterDeclarations } from '../controllers/provisioning/plugin/parameter.ts'
import { readParameters } from '../controllers/provisioning/plugin/read-parameters.ts'
import { startTestCluster, type TestClaim } from './test-cluster.ts'

export interface ConformanceOptions {
  /** A claim that this provisioner can satisfy. Default: a claim for 1Gi with a class without parameters. */
  readonly claim?: TestClaim
  /**
   * Parameters of another class that this provisioner can satisfy. Default: the parameters of the claim with each other
   * value of a choice or flag in turn.
   */
  readonly otherParameters?: Readonly<Record<string, string>>
}

export async function testProvisioner(
  plugin: AnyProvisionerPlugin,
  { claim = {}, otherParameters }: ConformanceOptions = {},
): Promise<void> {
  const calls: { request: Parameters<AnyProvisionerPlugin['provision']>[0]; provisionedVolume: ProvisionedVolume }[] =
    []
  const recordingPlugin: AnyProvisionerPlugin = {
    ...bindMethods(plugin),
    async provision(request, call) {
      const provisionedVolume = await plugin.provision(request, call)
      calls.push({ request, provisionedVolume })
      return provisionedVolume
    },
  }
  const call: Call = { signal: new AbortController().signal }
  const cluster = await startTestCluster(recordingPlugin)
  try {
    const firstVolume = await cluster.provision(claim)
    const secondVolume = await cluster.provision(claim)
    checkRule(
      'two claims get two volumes',
      !isDeepStrictEqual(firstVolume.source, secondVolume.source),
      firstVolume.source,
    )

    const { request, provisionedVolume } = calls[0]!
    const repeatedResult = await plugin.provision(request, call)
    checkRule(
      'the same request returns the same volume',
      isDeepStrictEqual(repeatedResult, provisionedVolume),
      repeatedResult,
    )
    // Simulates a crash, after which the class is replaced before the request is repeated.
    for (const parameters of readOtherParameters(plugin, claim.parameters, otherParameters)) {
      const result = await readSource(plugin.provision({ ...request, parameters }, call))
      checkRule(
        NAME_IDENTIFIES_VOLUME,
        result === UNKNOWN_OUTCOME || isDeepStrictEqual(result, provisionedVolume.source),
        result,
      )
    }
    if (plugin.find) {
      const result = await plugin.find({ volumeName: firstVolume.name, sizeBytes: firstVolume.sizeBytes }, call)
      checkRule(
        'find returns the provisioned volume',
        isDeepStrictEqual(result?.source, provisionedVolume.source),
        result,
      )
    }
    if (plugin.expand) {
      const volume = await cluster.expand(firstVolume, `${firstVolume.sizeBytes * 2n}`)
      const expand = async (sizeBytes: bigint) => BigInt((await plugin.expand!({ volume, sizeBytes }, call)).sizeBytes)
      const repeatedSize = await expand(volume.sizeBytes)
      checkRule('expanding an expanded volume returns its size', repeatedSize === volume.sizeBytes, repeatedSize)
      const sizeAfterSmallerRequest = await expand(firstVolume.sizeBytes)
      checkRule('a volume never shrinks', sizeAfterSmallerRequest === volume.sizeBytes, sizeAfterSmallerRequest)
    }
    if (plugin.owns) {
      checkRule('owns accepts a provisioned volume', plugin.owns(firstVolume), firstVolume.source)
      const foreignSource: Partial<VolumeSources> = { csi: { driver: 'not.yours.example.com', volumeHandle: 'x' } }
      checkRule(
        'owns rejects a foreign volume',
        !plugin.owns({ ...firstVolume, name: 'x', source: foreignSource }),
        foreignSource,
      )
    }

    const callCountBefore = calls.length
    const claimWithUnknownParameter = { ...claim, parameters: { ...claim.parameters, [UNKNOWN_PARAMETER]: 'x' } }
    const errorMessage = await cluster.provision(claimWithUnknownParameter).then(
      () => undefined,
      (error: Error) => error.message,
    )
    checkRule('an unknown parameter is rejected', errorMessage?.includes(UNKNOWN_PARAMETER) ?? false, errorMessage)
    checkRule(
      'no volume is provisioned for a class with an unknown parameter',
      calls.length === callCountBefore,
      calls.length - callCountBefore,
    )

    await cluster.release(firstVolume)
    await cluster.restart()
    await cluster.release(secondVolume)
    await plugin
      .delete(firstVolume, call)
      .catch((error) => checkRule('deleting a deleted volume succeeds', false, error.message))
    if (plugin.find) {
      const deletedVolume = await plugin.find({ volumeName: firstVolume.name, sizeBytes: firstVolume.sizeBytes }, call)
      checkRule('find returns nothing for a deleted volume', deletedVolume === undefined, deletedVolume)
    }
  } finally {
    await cluster.stop()
  }
}

const UNKNOWN_PARAMETER = 'conformance-unknown-parameter'
const NAME_IDENTIFIES_VOLUME = 'the volume name, not the parameters, identifies the volume: the earlier one is returned'

/** Returns the parameters of other valid classes, as `provision` receives them. Throws if `otherParameters` are invalid. */
function readOtherParameters(
  { name, parameters: declarations = {} }: AnyProvisionerPlugin,
  parameters: Readonly<Record<string, string>> = {},
  otherParameters: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, unknown>>[] {
  const otherClasses = otherParameters
    ? [otherParameters]
    : Object.entries(declarations as ParameterDeclarations).flatMap(([key, { values = [] }]) =>
        values.filter((value) => value !== parameters[key]).map((value) => ({ ...parameters, [key]: value })),
      )
  return otherClasses.flatMap((classParameters) => {
    const result = readParameters(declarations, classParameters, { className: 'another', provisioner: name })
    if (result.is === 'read') return [result.values]
    if (otherParameters) throw new Error(`otherParameters: ${result.message}`)
    return []
  })
}

/** Represents a failure after which a volume may exist. The controller then repeats the request. */
const UNKNOWN_OUTCOME = Symbol('unknown outcome')

/** Returns the volume's source, UNKNOWN_OUTCOME or the message of another error. */
async function readSource(provisioning: Promise<ProvisionedVolume>): Promise<unknown> {
  try {
    return (await provisioning)?.source
  } catch (error) {
    // All other errors declare that this provisioner has no such volume, which is false: an earlier request created it.
    return UNKNOWN_OUTCOME_KINDS.has(failureKindOf(error)) ? UNKNOWN_OUTCOME : errorMessageOf(error)
  }
}

const UNKNOWN_OUTCOME_KINDS: ReadonlySet<FailureKind> = new Set(['unfinished', 'noChange'])

/** Copies the plugin with its methods bound to it. A spread alone would omit the methods of a class instance. */
function bindMethods(plugin: AnyProvisionerPlugin): AnyProvisionerPlugin {
  const { find, owns, expand, modify } = plugin
  return {
    ...plugin,
    name: plugin.name,
    provision: plugin.provision.bind(plugin),
    delete: plugin.delete.bind(plugin),
    ...(find ? { find: find.bind(plugin) } : {}),
    ...(owns ? { owns: owns.bind(plugin) } : {}),
    ...(expand ? { expand: expand.bind(plugin) } : {}),
    ...(modify ? { modify: modify.bind(plugin) } : {}),
  }
}

function checkRule(name: string, isMet: boolean, actual: unknown): void {
  if (isMet) return
  const actualText = JSON.stringify(actual, (_key, value) => (typeof value === 'bigint' ? `${value}n` : value))
  throw new Error(`The provisioner breaks a rule: ${name}. Got ${actualText}.`)
}
