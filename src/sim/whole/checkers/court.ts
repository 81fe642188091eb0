// What every checker of the whole is given: the stage, the store as it is, and what has happened that excuses something.
import type { Client } from '../../../client/index.ts'
import type { FakeVolume } from '../../../csi/fake/index.ts'
import type { Stage } from '../stage.ts'
import { DRIVERS, type DriverName } from '../universe.ts'
import type { Of, View } from '../view.ts'
import type { Past } from './past.ts'

export interface Court {
  readonly stage: Stage
  readonly view: View
  readonly past: Past
  convict(rule: Rule, text: string): void
}

export interface Problem {
  readonly rule: Rule
  readonly text: string
}

/** A few stable words each: whoever shrinks a failing plan holds on to them. */
export type Rule =
  | 'two claims'
  | 'deleted wrongly'
  | 'shrunk'
  | 'quota'
  | 'overlap'
  | 'two leaders'
  | 'published twice'
  | 'mounted wrongly'
  | 'asked without intent'
  | 'placed wrongly'
  | 'told wrongly'
  | 'lost write'
  | 'watch'
  | 'leak'
  | 'missing'
  | 'says not why'
  | 'could go on'
  | 'not gone'
  | 'attached'
  | 'attributes'
  | 'size'
  | 'finalizers'
  | 'capacity'
  | 'tries for ever'
  | 'metrics'

/** What a process does with the server. */
export interface ClientSpy {
  aroundClient(process: string, client: Client): Client
}

export interface Asset {
  readonly driver: DriverName
  readonly handle: string
}

export const partsOf = (asset: string): Asset => {
  const at = asset.indexOf('^')
  return { driver: asset.slice(0, at) as DriverName, handle: asset.slice(at + 1) }
}

/** What a driver's storage has there. */
export function heldAt(stage: Stage, asset: string): FakeVolume | undefined {
  const { driver, handle } = partsOf(asset)
  return stage.drivers.get(driver)?.state().volumes[handle]
}

/** Everything that the drivers' storage has. */
export function* assetsIn(stage: Stage): Generator<{ readonly asset: string; readonly held: FakeVolume }> {
  for (const driver of DRIVERS) {
    for (const held of Object.values(stage.drivers.get(driver)?.state().volumes ?? {})) {
      yield { asset: `${driver}^${held.id}`, held }
    }
  }
}

export const isBound = ({ status }: Of<'claim'>): boolean => status?.phase === 'Bound'

/** The claims that a pod names, and whether each was made with it. */
export function claimsOf({ metadata, spec }: Of<'pod'>, view: View) {
  return (spec?.volumes ?? []).flatMap(({ name: volume, persistentVolumeClaim, ephemeral }) => {
    const name = persistentVolumeClaim?.claimName ?? (ephemeral ? `${metadata.name}-${volume}` : undefined)
    if (name === undefined) return []
    const key = `${metadata.namespace}/${name}`
    return [{ key, claim: view.claims.get(key), isEphemeral: ephemeral !== undefined, volume }]
  })
}

/** A claim made with a pod is that very pod's, or somebody else's of the same name. */
export const isMadeFor = (pod: Of<'pod'>, claim: Of<'claim'>): boolean =>
  claim.metadata.ownerReferences?.some(({ uid, controller }) => controller && uid === pod.metadata.uid) ?? false

export const hasEnded = ({ status }: Of<'pod'>): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed'

export const isGoing = ({ metadata }: { readonly metadata: { readonly deletionTimestamp?: string } }): boolean =>
  metadata.deletionTimestamp !== undefined

/** CSI has no word for a volume that one node may write and many may read, unless many may write: no driver is asked. */
export const isContradictory = ({ spec: { accessModes = [] } = {} }: Of<'volume'>): boolean =>
  accessModes.includes('ReadWriteOnce') &&
  accessModes.includes('ReadOnlyMany') &&
  !accessModes.includes('ReadWriteMany')
