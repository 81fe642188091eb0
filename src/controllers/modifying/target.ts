// A modification's target: the attributes class, and the claim's own iops and throughput.
// Throughput is in bytes per second; ../provisioning/csi/attributes.ts converts it to CSI parameters.
import { IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import { compareQuantities, isQuantity } from '../../api/quantity.ts'
import type { RequestedAttributes } from '../provisioning/csi/attributes.ts'

export type Target = RequestedAttributes
export type IoName = (typeof IO_RESOURCES)[number]

/** Mutable parameters in the driver's keys and values. */
export type Attributes = Readonly<Record<string, string>>

export const isSameAmount = (a: string | undefined, b: string | undefined): boolean => {
  if (a === undefined || b === undefined) return a === b
  return isQuantity(a) && isQuantity(b) ? compareQuantities(a, b) === 0 : a === b
}

export const isSameTarget = (a: Target, b: Target): boolean =>
  a.className === b.className && IO_RESOURCES.every((name) => isSameAmount(a[name], b[name]))

/** Returns the amounts of the target, for example `iops 500, throughput 50Mi`. */
export const formatIo = (target: Target, names: readonly IoName[] = IO_RESOURCES): string =>
  names
    .filter((name) => target[name] !== undefined)
    .map((name) => `${name} ${target[name]}`)
    .join(', ')

/** Returns the class name, or the amounts if the target has no class. */
export const formatTarget = (target: Target): string => target.className ?? formatIo(target)
