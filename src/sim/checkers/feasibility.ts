// Determines whether the drivers can create a volume for a claim or apply attributes in their current state, and how much is
// free in each pool. Independent of the production code that makes the same decisions.
import { quantityToBytes } from '../../api/quantity.ts'
import type { FakePool, FakeSettings, FakeState } from '../../csi/fake/index.ts'
import type { System } from '../engine/system.ts'
import type { ObjectOf, View } from '../engine/view.ts'
import { DRIVERS, type DriverName, TOPOLOGY_KEY } from '../plan/catalog.ts'
import { findDriverVolume } from './context.ts'

const AMOUNTS = ['iops', 'throughput']

export const requestOf = ({ spec }: ObjectOf<'claim'>): number =>
  Number(quantityToBytes(spec?.resources?.requests?.storage ?? '0'))

export function freeBytes(system: System, driver: DriverName, pool: FakePool): number {
  let bytes = pool.capacityBytes
  for (const volume of Object.values(stateOf(system, driver).volumes)) {
    if (volume.pool === pool.name) bytes -= volume.capacityBytes * volume.copies
  }
  return bytes
}

/** Returns the pools reachable from a node; without a node, all pools. Pools of nodes that are off are not reachable. */
export const listReachablePools = (system: System, driver: DriverName, node?: string): readonly FakePool[] =>
  settingsIn(system, driver).pools.filter(
    ({ segments }) =>
      (!node || !segments || segments[TOPOLOGY_KEY] === node) && !isOnLostNode(system, segments?.[TOPOLOGY_KEY]),
  )

const isOnLostNode = (system: System, node: string | undefined): boolean =>
  system.setup.nodeStorage === true && node !== undefined && system.nodes.get(node)?.isReachable === false

/** Whether the driver cannot reach the volume, because the only node that has it is off. */
export const isUnreachable = (system: System, asset: string): boolean =>
  isOnLostNode(system, findDriverVolume(system, asset)?.segments?.[TOPOLOGY_KEY])

export const settingsIn = (system: System, driver: DriverName): FakeSettings => system.drivers.get(driver)!.settings
const stateOf = (system: System, driver: DriverName): FakeState => system.drivers.get(driver)!.state()

/** Whether a resizer runs for the driver and reports reasons. No resizer sidecar runs for a driver that cannot change volumes. */
export function hasResizer(system: System, driver: DriverName): boolean {
  const { controller } = settingsIn(system, driver)
  return (
    system.setup.driverControllers !== 'sidecars' ||
    controller.includes('EXPAND_VOLUME') ||
    controller.includes('MODIFY_VOLUME')
  )
}

/** Returns how many copies of each volume a class requests. */
export const copiesOf = ({ parameters }: ObjectOf<'class'>): number => Number(parameters?.copies ?? 1)

export const driverOf = (storageClass: ObjectOf<'class'> | undefined): DriverName | undefined =>
  DRIVERS.find((name) => name === storageClass?.provisioner)

/** Whether a driver can apply the requested attributes: the class is for this driver, and the driver supports every key. */
export function canHaveAttributes(
  claim: ObjectOf<'claim'>,
  driver: DriverName,
  { system, view }: SystemState,
): boolean {
  const { mutableKeys, controller } = settingsIn(system, driver)
  const { volumeAttributesClassName: className, resources } = claim.spec ?? {}
  const ownAmounts = AMOUNTS.filter((name) => resources?.requests?.[name] !== undefined)
  if (!className && ownAmounts.length === 0) return true
  if (!controller.includes('MODIFY_VOLUME') || ownAmounts.some((name) => !mutableKeys.includes(name))) return false
  if (!className) return true
  const attributesClass = view.attributesClasses.get(className)
  if (!attributesClass || attributesClass.metadata.deletionTimestamp || attributesClass.driverName !== driver)
    return false
  const keys = Object.keys(attributesClass.parameters ?? {})
  // Class and claim may set the same amount only if they agree; treated as not applicable here.
  return keys.every((key) => mutableKeys.includes(key) && !ownAmounts.includes(key))
}

export interface SystemState {
  readonly system: System
  readonly view: View
}

/** Whether a volume could be created for a claim, on this node or anywhere. Clones are not considered. */
export function canCreate(
  claim: ObjectOf<'claim'>,
  storageClass: ObjectOf<'class'>,
  state: SystemState,
  node?: string,
): boolean {
  const driver = driverOf(storageClass)
  if (!driver || claim.spec?.selector || claim.spec?.volumeName) return false
  if (claim.spec?.dataSource || claim.spec?.dataSourceRef) return false
  const { maximumBytes } = settingsIn(state.system, driver)
  const bytes = requestOf(claim)
  const poolBytes = bytes * copiesOf(storageClass)
  if (bytes > maximumBytes || !canHaveAttributes(claim, driver, state)) return false
  return listReachablePools(state.system, driver, node).some(
    (pool) => freeBytes(state.system, driver, pool) >= poolBytes,
  )
}
