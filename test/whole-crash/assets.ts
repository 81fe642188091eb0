// Names a volume's storage, its asset: `driver vol-7` or `plugin pvc-1`.
import type { ObjectOf } from '../../src/sim/engine/view.ts'

export type Claim = ObjectOf<'claim'>
export type Volume = ObjectOf<'volume'>

/** Path prefix of the in-process plugin's volumes. */
const PLUGIN_PATH = '/memory/'

/** A volume of the driver. `name` is the name in the CreateVolume request. */
interface DriverVolume {
  readonly id: string
  readonly name: string
}

/** The volumes of the driver and of the in-process plugin. */
export interface Storage {
  readonly driver: { state(): { readonly volumes: Readonly<Record<string, DriverVolume>> } }
  readonly plugin: ReadonlyMap<string, bigint>
}

export const driverAsset = (volumeId: string): string => `driver ${volumeId}`
const pluginAsset = (name: string): string => `plugin ${name}`

export const assetsIn = ({ driver, plugin }: Storage): ReadonlySet<string> =>
  new Set([...Object.keys(driver.state().volumes).map(driverAsset), ...[...plugin.keys()].map(pluginAsset)])

/** Returns undefined for storage of other provisioners. */
export function assetOf({ spec }: Volume): string | undefined {
  if (spec?.csi) return driverAsset(spec.csi.volumeHandle)
  const path = spec?.hostPath?.path
  return path?.startsWith(PLUGIN_PATH) ? pluginAsset(path.slice(PLUGIN_PATH.length)) : undefined
}
