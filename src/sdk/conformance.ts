// What every provisioner must do, tried on one: a unit test in one line. What breaks a rule is thrown as an error that
// names the rule.
import { isDeepStrictEqual } from 'node:util'
import type { Call, MadeVolume, ProvisionerPlugin, VolumeSources } from '../controllers/provisioning/plugin/contract.ts'
import { type Meaning, meaningOf } from '../controllers/provisioning/plugin/failures.ts'
import type { ParameterDeclarations } from '../controllers/provisioning/plugin/parameter.ts'
import { readParameters } from '../controllers/provisioning/plugin/read-parameters.ts'
import { thrownText } from '../controllers/provisioning/plugin/wording.ts'
import { startTrial, type TrialClaim } from './trial.ts'

export interface ConformanceOptions {
  /** A claim that this provisioner can fulfil. Default: 1Gi, of a class without parameters. */
  readonly claim?: TrialClaim
  /**
   * Parameters of another class that this provisioner can fulfil too. Default: those of the claim, with another value
   * for each that is a choice or a flag.
   */
  readonly otherParameters?: Readonly<Record<string, string>>
}

export async function testProvisioner(
  plugin: ProvisionerPlugin<any, any>,
  { claim = {}, otherParameters }: ConformanceOptions = {},
): Promise<void> {
  const calls: { request: any; made: any }[] = []
  const watched: ProvisionerPlugin<any, any> = {
    ...bound(plugin),
    async provision(request, call) {
      const made = await plugin.provision(request, call)
      calls.push({ request, made })
      return made
    },
  }
  const call: Call = { signal: new AbortController().signal }
  const trial = await startTrial(watched)
  try {
    const first = await trial.provision(claim)
    const second = await trial.provision(claim)
    rule('two claims get two volumes', !isDeepStrictEqual(first.source, second.source), first.source)

    const { request, made } = calls[0]!
    const again = await plugin.provision(request, call)
    rule('the same request gives the same volume again', isDeepStrictEqual(again, made), again)
    // As when the process died, and the class was replaced by another before the next try.
    for (const parameters of otherClasses(plugin, claim.parameters, otherParameters)) {
      const found = await madeBy(plugin.provision({ ...request, parameters }, call))
      rule(NAME_DECIDES, found === UNDECIDED || isDeepStrictEqual(found, made.source), found)
    }
    if (plugin.find) {
      const found = await plugin.find({ volumeName: first.name, sizeBytes: first.sizeBytes }, call)
      rule('find finds what was made', isDeepStrictEqual(found?.source, made.source), found)
    }
    if (plugin.owns) {
      rule('it owns what it made', plugin.owns(first), first.source)
      const foreign: Partial<VolumeSources> = { csi: { driver: 'not.yours.example.com', volumeHandle: 'x' } }
      rule('it owns nothing of others', !plugin.owns({ ...first, name: 'x', source: foreign }), foreign)
    }

    const before = calls.length
    const unknown = { ...claim, parameters: { ...claim.parameters, [UNKNOWN_PARAMETER]: 'x' } }
    const refused = await trial.provision(unknown).then(
      () => undefined,
      (error: Error) => error.message,
    )
    rule('a parameter it does not know is refused', refused?.includes(UNKNOWN_PARAMETER) ?? false, refused)
    rule('and nothing is made', calls.length === before, calls.length - before)

    await trial.release(first)
    await trial.restart()
    await trial.release(second)
    await plugin.delete(first, call).catch((error) => rule('what is gone is deleted', false, error.message))
    if (plugin.find) {
      const left = await plugin.find({ volumeName: first.name, sizeBytes: first.sizeBytes }, call)
      rule('find finds nothing of a deleted volume', left === undefined, left)
    }
  } finally {
    await trial.stop()
  }
}

const UNKNOWN_PARAMETER = 'conformance-unknown-parameter'
const NAME_DECIDES = 'the name decides which volume it is, not the parameters: the one that was made before is found'

/** As `provision` would get them; classes that it would refuse are left out. */
function otherClasses(
  { name, parameters: declared = {} }: ProvisionerPlugin<any, any>,
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

/** Nothing is known: the same name is asked for again, and again. */
const UNDECIDED = Symbol('undecided')

async function madeBy(provisioning: Promise<MadeVolume>): Promise<unknown> {
  try {
    return (await provisioning)?.source
  } catch (error) {
    // Every other failure says that nothing is there, though something is.
    return MAY_EXIST.has(meaningOf(error)) ? UNDECIDED : thrownText(error)
  }
}

const MAY_EXIST: ReadonlySet<Meaning> = new Set(['unfinished', 'noChange'])

/** Its functions still know the plugin they belong to; those it lacks stay absent. */
function bound(plugin: ProvisionerPlugin<any, any>): ProvisionerPlugin<any, any> {
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
  throw new Error(`A rule for provisioners is broken: ${name}. Got ${shown}.`)
}
