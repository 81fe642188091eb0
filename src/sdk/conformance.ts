// What every provisioner must do, tried on one: a unit test in one line. What breaks a rule is thrown as an error that
// names the rule.
import { isDeepStrictEqual } from 'node:util'
import type { Call, ProvisionerPlugin, VolumeSources } from '../controllers/provisioning/plugin/contract.ts'
import { startTrial, type TrialClaim } from './trial.ts'

export interface ConformanceOptions {
  /** A claim that this provisioner can fulfil. Default: 1Gi, of a class without parameters. */
  readonly claim?: TrialClaim
}

export async function testProvisioner(
  plugin: ProvisionerPlugin<any, any>,
  { claim = {} }: ConformanceOptions = {},
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
