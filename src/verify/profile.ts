// Reads a driver's profile (name, version, services and capabilities), and determines why a check does not apply to it.
import { type CsiDriver, type DriverFacts, isUnimplemented, readDriverFacts } from '../csi/index.ts'
import type { Needs } from './check.ts'
import type { VerifySettings } from './settings.ts'

export interface DriverProfile extends DriverFacts {
  readonly hasController: boolean
  readonly hasNode: boolean
}

export async function readProfile(csi: CsiDriver, signal: AbortSignal): Promise<DriverProfile> {
  const facts = await readDriverFacts(csi, signal)
  const isServed = async (call: Promise<unknown>) => {
    try {
      await call
      return true
    } catch (error) {
      if (isUnimplemented(error)) return false
      throw error
    }
  }
  return {
    ...facts,
    hasController: await isServed(csi.controller.controllerGetCapabilities({}, { signal })),
    hasNode: await isServed(csi.node.nodeGetCapabilities({}, { signal })),
  }
}

/** At most 63 characters: letters and digits, and dashes, dots and underscores between them. */
export const isValidDriverName = (name: string): boolean =>
  /^(?=.{1,63}$)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/.test(name)

export interface Abilities {
  readonly profile: DriverProfile
  readonly settings: Pick<VerifySettings, 'otherNodeId' | 'attributes'>
  readonly canRestart: boolean
}

/** Returns why a check with these requirements does not apply, or undefined if it does. */
export function explainUnmetNeed(needs: Needs, { profile, settings, canRestart }: Abilities): string | undefined {
  if (needs.controller && !profile.hasController) return 'the socket serves no controller service'
  if (needs.node && !profile.hasNode) return 'the socket serves no node service'
  const missingController = needs.controller?.find((name) => !profile.controller.has(name))
  if (missingController) return `the controller service does not advertise ${missingController}`
  const missingNode = needs.node?.find((name) => !profile.node.has(name))
  if (missingNode) return `the node service does not advertise ${missingNode}`
  const missingPlugin = needs.plugin?.find((name) => !profile.plugin.has(name))
  if (missingPlugin) return `the driver does not advertise ${missingPlugin}`
  if (needs.onlyOfflineExpansion && (profile.expansion.has('ONLINE') || !profile.expansion.has('OFFLINE')))
    return 'the driver advertises ONLINE expansion, or no expansion'
  if (needs.bench && !isValidDriverName(profile.name)) return 'controllers reject the name of the driver'
  if (needs.restart && !canRestart) return 'verify can kill only a driver that it started; use --driver'
  if (needs.otherNode && settings.otherNodeId === undefined)
    return 'the id of a second node is not known; use --other-node'
  if (needs.attributes && settings.attributes === undefined)
    return 'no mutable parameters are known; add a VolumeAttributesClass to --class'
  return undefined
}
