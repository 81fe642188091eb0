// Conformance test of a provisioner in one line. Throws an error that names the rule that is broken.
import { isDeepStrictEqual } from 'node:util'
import type {
  AnyProvisionerPlugin,
  Call,
  ProvisionedVolume,
  VolumeSources,
} from '../controllers/provisioning/plugin/contract.ts'
import { type Meaning, meaningOf } from '../controllers/provisioning/plugin/failures.ts'
import type { ParameterDeclarations } from '../controllers/provisioning/plugin/parameter.ts'
import { readParameters } from '../controllers/provisioning/plugin/read-parameters.ts'
import { thrownText } from '../controllers/provisioning/plugin/wording.ts'
import { startTestCluster, type TestClaim } from './test-cluster.ts'

export interface ConformanceOptions {
  /** A claim that this provisioner can satisfy. Default: 1Gi, of a class without parameters. */
  readonly claim?: TestClaim
  /**
   * Parameters of another class that this provisioner can satisfy. Default: those of the claim, with another value for
   * each choice or flag.
   */
  readonly otherParameters?: Readonly<Record<string, string>>
}

export async function testProvisioner(
  plugin: AnyProvisionerPlugin,
  { claim = {}, otherParameters }: ConformanceOptions = {},
): Promise<void> {
  const calls: { request: Parameters<AnyProvisionerPlugin['provision']>[0]; made: ProvisionedVolume }[] = []
  const watched: AnyProvisionerPlugin = {
    ...bound(plugin),
    async provision(request, call) {
      const made = await plugin.provision(request, call)
      calls.push({ request, made })
      return made
    },
  }
  const call: Call = { signal: new AbortController().signal }
  const cluster = await startTestCluster(watched)
  try {
    const first = await cluster.provision(claim)
    const second = await cluster.provision(claim)
    rule('two claims get two volumes', !isDeepStrictEqual(first.source, second.source), first.source)

    const { request, made } = calls[0]!
    const again = await plugin.provision(request, call)
    rule('the same request returns the same volume', isDeepStrictEqual(again, made), again)
    // As if the process crashed and the class was replaced before the next attempt.
    for (const parameters of otherClasses(plugin, claim.parameters, otherParameters)) {
      const found = await madeBy(plugin.provision({ ...request, parameters }, call))
      rule(NAME_DECIDES, found === UNDECIDED || isDeepStrictEqual(found, made.source), found)
    }
    if (plugin.find) {
      const found = await plugin.find({ volumeName: first.name, sizeBytes: first.sizeBytes }, call)
      rule('find returns the provisioned volume', isDeepStrictEqual(found?.source, made.source), found)
    }
    if (plugin.owns) {
      rule('owns accepts a provisioned volume', plugin.owns(first), first.source)
      const foreign: Partial<VolumeSources> = { csi: { driver: 'not.yours.example.com', volumeHandle: 'x' } }
      rule('owns rejects a foreign volume', !plugin.owns({ ...first, name: 'x', source: foreign }), foreign)
    }

    const before = calls.length
    const unknown = { ...claim, parameters: { ...claim.parameters, [UNKNOWN_PARAMETER]: 'x' } }
    const refused = await cluster.provision(unknown).then(
      () => undefined,
      (error: Error) => error.message,
    )
    rule('an unknown parameter is rejected', refused?.includes(UNKNOWN_PARAMETER) ?? false, refused)
    rule('an unknown parameter provisions nothing', calls.length === before, calls.length - before)

    await cluster.release(first)
    await cluster.restart()
    await cluster.release(second)
    await plugin.delete(first, call).catch((error) => rule('deleting a deleted volume succeeds', false, error.message))
    if (plugin.find) {
      const left = await plugin.find({ volumeName: first.name, sizeBytes: first.sizeBytes }, call)
      rule('find returns nothing for a deleted volume', left === undefined, left)
    }
  } finally {
    await cluster.stop()
  }
}

const UNKNOWN_PARAMETER = 'conformance-unknown-parameter'
const NAME_DECIDES = 'the volume name, not the parameters, identifies the volume: the earlier one is returned'

/** As `provision` would receive them; classes that it would reject are omitted. */
function otherClasses(
  { name, parameters: declared = {} }: AnyProvisionerPlugin,
  given: Readonly<Record<string, string>> = {},
  other: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, unknown>>[] {
  const classes = other
    ? [other]
    : Object.entries(declared as ParameterDeclarations).flatMap(([key, { values = [] }]) =>
        values.filter((value) => value !== given[key]).map((value) => ({ ...given, [key]: value })),
      )
  return classes.flatMap((parameters) => {
    const read = readParameters(declared, parameters, { className: 'another', provisioner: name })
    if (read.is === 'read') return [read.values]
    if (other) throw new Error(`otherParameters: ${read.because}`)
    return []
  })
}

/** The outcome is unknown: the caller repeats the request. */
const UNDECIDED = Symbol('undecided')

async function madeBy(provisioning: Promise<ProvisionedVolume>): Promise<unknown> {
  try {
    return (await provisioning)?.source
  } catch (error) {
    // Every other failure claims that nothing exists, which is wrong here.
    return MAY_EXIST.has(meaningOf(error)) ? UNDECIDED : thrownText(error)
  }
}

const MAY_EXIST: ReadonlySet<Meaning> = new Set(['unfinished', 'noChange'])

/** Binds the functions to the plugin; absent ones stay absent. */
function bound(plugin: AnyProvisionerPlugin): AnyProvisionerPlugin {
  const { find, owns } = plugin
  return {
    ...plugin,
    name: plugin.name,
    provision: plugin.provision.bind(plugin),
    delete: plugin.delete.bind(plugin),
    ...(find ? { find: find.bind(plugin) } : {}),
    ...(owns ? { owns: owns.bind(plugin) } : {}),
  }
}

function rule(name: string, holds: boolean, got: unknown): void {
  if (holds) return
  const shown = JSON.stringify(got, (_key, value) => (typeof value === 'bigint' ? `${value}n` : value))
  throw new Error(`The provisioner breaks a rule: ${name}. Got ${shown}.`)
}
