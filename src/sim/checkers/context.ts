// Defines the context of every checker: the system, the contents of the store, the exemptions, and a function to report
// violations. Also has the names of the rules, and predicates that several checkers share.
import type { Client } from '../../client/index.ts'
import type { FakeVolume } from '../../csi/fake/index.ts'
import type { System } from '../engine/system.ts'
import type { ObjectOf, View } from '../engine/view.ts'
import { DRIVERS, type DriverName } from '../plan/catalog.ts'
import type { Exemptions } from './exemptions.ts'

export interface CheckContext {
  readonly system: System
  readonly view: View
  readonly exemptions: Exemptions
  report(rule: Rule, text: string): void
}

export interface Problem {
  readonly rule: Rule
  readonly text: string
}

/** Stable names: shrinking keeps violations of the same rule, and docs/explanation/simulation.md explains each. */
export type Rule =
  | 'double binding'
  | 'wrong deletion'
  | 'shrunk'
  | 'quota'
  | 'overlap'
  | 'two leaders'
  | 'double attach'
  | 'wrong mount'
  | 'no intent'
  | 'wrong placement'
  | 'wrong preemption'
  | 'wrong status'
  | 'lost write'
  | 'watch'
  | 'leak'
  | 'missing'
  | 'no reason'
  | 'needless wait'
  | 'not deleted'
  | 'attachments'
  | 'attributes'
  | 'size'
  | 'finalizers'
  | 'capacity'
  | 'endless retry'
  | 'metrics'
  | 'charge'
  | 'cache'
  | 'needless attempt'
  | 'no operation'
  | 'stale operation'
  | 'identity'
  | 'order'
  | 'retention'
  | 'set status'
  | 'growth'
  | 'two writers'
  | 'lost volume'

/** Observes the requests that each incarnation of a process sends to the server. */
export interface ClientObserver {
  wrapClient(process: string, client: Client): Client
}

/** A volume in the storage of a driver, which exists with or without a PersistentVolume. */
export interface Asset {
  readonly driver: DriverName
  readonly handle: string
}

export const parseAsset = (asset: string): Asset => {
  const separator = asset.indexOf('^')
  return { driver: asset.slice(0, separator) as DriverName, handle: asset.slice(separator + 1) }
}

/** Returns the driver's volume for an asset name (`driver^handle`). */
export function findDriverVolume(system: System, asset: string): FakeVolume | undefined {
  const { driver, handle } = parseAsset(asset)
  return system.drivers.get(driver)?.state().volumes[handle]
}

/** Yields all volumes of the drivers. */
export function* listAssets(system: System): Generator<{ readonly asset: string; readonly driverVolume: FakeVolume }> {
  for (const driver of DRIVERS) {
    for (const driverVolume of Object.values(system.drivers.get(driver)?.state().volumes ?? {})) {
      yield { asset: `${driver}^${driverVolume.id}`, driverVolume }
    }
  }
}

export { isBound } from './bindings.ts'

/** Returns the claims that a pod uses, and whether each is ephemeral. */
export function claimsOf({ metadata, spec }: ObjectOf<'pod'>, view: View) {
  return (spec?.volumes ?? []).flatMap(({ name: volume, persistentVolumeClaim, ephemeral }) => {
    const name = persistentVolumeClaim?.claimName ?? (ephemeral ? `${metadata.name}-${volume}` : undefined)
    if (name === undefined) return []
    const key = `${metadata.namespace}/${name}`
    return [{ key, claim: view.claims.get(key), isEphemeral: ephemeral !== undefined, volume }]
  })
}

/** Whether an ephemeral claim belongs to this pod, and not to an earlier pod with the same name. */
export const isOwnedBy = (pod: ObjectOf<'pod'>, claim: ObjectOf<'claim'>): boolean =>
  claim.metadata.ownerReferences?.some(({ uid, controller }) => controller && uid === pod.metadata.uid) ?? false

export const isDeleting = ({ metadata }: { readonly metadata: { readonly deletionTimestamp?: string } }): boolean =>
  metadata.deletionTimestamp !== undefined

/** Whether the access modes contradict each other. No driver is called for such a volume. */
export const isContradictory = ({ spec: { accessModes = [] } = {} }: ObjectOf<'volume'>): boolean =>
  accessModes.includes('ReadWriteOnce') &&
  accessModes.includes('ReadOnlyMany') &&
  !accessModes.includes('ReadWriteMany')
