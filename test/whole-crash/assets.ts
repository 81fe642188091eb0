// What is behind a volume, by a name that driver and plugin know: `driver vol-7`, `plugin pvc-1`.
import type { ObjectOf } from '../../src/sim/engine/view.ts'

export type Claim = ObjectOf<'claim'>
export type Volume = ObjectOf<'volume'>

/** Where the volumes of the plugin in the binder's process are. */
export const PLUGIN_PATH = '/memory/'

/** By its id. `name`: what it was called by whoever asked for it. */
export interface HeldVolume {
  readonly id: string
  readonly name: string
}

/** Everything that the storage of the world holds. */
export interface Storage {
  readonly driver: { state(): { readonly volumes: Readonly<Record<string, HeldVolume>> } }
  readonly plugin: ReadonlyMap<string, bigint>
}

export const driverAsset = (volumeId: string): string => `driver ${volumeId}`
export const pluginAsset = (name: string): string => `plugin ${name}`

export const assetsIn = ({ driver, plugin }: Storage): ReadonlySet<string> =>
  new Set([...Object.keys(driver.state().volumes).map(driverAsset), ...[...plugin.keys()].map(pluginAsset)])

/** Undefined for storage that is nobody's here. */
export function assetOf({ spec }: Volume): string | undefined {
  if (spec?.csi) return driverAsset(spec.csi.volumeHandle)
  const path = spec?.hostPath?.path
  return path?.startsWith(PLUGIN_PATH) ? pluginAsset(path.slice(PLUGIN_PATH.length)) : undefined
}
