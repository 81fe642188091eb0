// What a driver could do now, said once more and independently of those who ask it: whether it could make a volume for a
// claim, and what is free where.
import { quantityToBytes } from '../../api/quantity.ts'
import type { FakePool, FakeSettings, FakeState } from '../../csi/fake/index.ts'
import type { System } from '../engine/system.ts'
import type { ObjectOf, View } from '../engine/view.ts'
import { DRIVERS, type DriverName, PLACE } from '../plan/catalog.ts'

const AMOUNTS = ['iops', 'throughput']

export const requestOf = ({ spec }: ObjectOf<'claim'>): number =>
  Number(quantityToBytes(spec?.resources?.requests?.storage ?? '0'))

export function freeBytes(system: System, driver: DriverName, pool: FakePool): number {
  let free = pool.capacityBytes
  for (const volume of Object.values(stateOf(system, driver).volumes)) {
    if (volume.pool === pool.name) free -= volume.capacityBytes * volume.copies
  }
  return free
}

/** From this node; with none, from anywhere. */
export const poolsAt = (system: System, driver: DriverName, node?: string): readonly FakePool[] =>
  settingsIn(system, driver).pools.filter(({ segments }) => !node || !segments || segments[PLACE] === node)

export const settingsIn = (system: System, driver: DriverName): FakeSettings => system.drivers.get(driver)!.settings
const stateOf = (system: System, driver: DriverName): FakeState => system.drivers.get(driver)!.state()

export const driverOf = (storageClass: ObjectOf<'class'> | undefined): DriverName | undefined =>
  DRIVERS.find((name) => name === storageClass?.provisioner)

/** Whether attributes could be had of a driver: the class is there, is its own, and it knows all it is asked for. */
export function canHaveAttributes(claim: ObjectOf<'claim'>, driver: DriverName, { system, view }: Where): boolean {
  const { mutableKeys, controller } = settingsIn(system, driver)
  const { volumeAttributesClassName: className, resources } = claim.spec ?? {}
  const own = AMOUNTS.filter((name) => resources?.requests?.[name] !== undefined)
  if (!className && own.length === 0) return true
  if (!controller.includes('MODIFY_VOLUME') || own.some((name) => !mutableKeys.includes(name))) return false
  if (!className) return true
  const found = view.attributesClasses.get(className)
  if (!found || found.metadata.deletionTimestamp || found.driverName !== driver) return false
  const keys = Object.keys(found.parameters ?? {})
  // Both may speak of one amount only if they agree; that is not looked into here.
  return keys.every((key) => mutableKeys.includes(key) && !own.includes(key))
}

export interface Where {
  readonly system: System
  readonly view: View
}

/** Whether a volume could be made for a claim, from this node or from anywhere. What it copies is not looked into. */
export function isMakeable(
  claim: ObjectOf<'claim'>,
  storageClass: ObjectOf<'class'>,
  where: Where,
  node?: string,
): boolean {
  const driver = driverOf(storageClass)
  if (!driver || claim.spec?.selector || claim.spec?.volumeName) return false
  if (claim.spec?.dataSource || claim.spec?.dataSourceRef) return false
  const { maximumBytes } = settingsIn(where.system, driver)
  const bytes = requestOf(claim)
  if (bytes > maximumBytes || !canHaveAttributes(claim, driver, where)) return false
  return poolsAt(where.system, driver, node).some((pool) => freeBytes(where.system, driver, pool) >= bytes)
}
