// The target of a modification: the attributes class, and the claim's own iops and throughput.
// Throughput is bytes/s here; its form in CSI parameters is ../provisioning/csi/attributes.ts.
import { IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import { compareQuantities, isQuantity } from '../../api/quantity.ts'
import type { RequestedAttributes } from '../provisioning/csi/attributes.ts'

export type Target = RequestedAttributes
export type IoName = (typeof IO_RESOURCES)[number]

/** Mutable parameters in the driver's keys and values. */
export type Attributes = Readonly<Record<string, string>>

export const sameAmount = (a: string | undefined, b: string | undefined): boolean => {
  if (a === undefined || b === undefined) return a === b
  return isQuantity(a) && isQuantity(b) ? compareQuantities(a, b) === 0 : a === b
}

export const sameTarget = (a: Target, b: Target): boolean =>
  a.className === b.className && IO_RESOURCES.every((name) => sameAmount(a[name], b[name]))

/** `iops 500, throughput 50Mi`, of the amounts in the target. */
export const ioText = (target: Target, names: readonly IoName[] = IO_RESOURCES): string =>
  names
    .filter((name) => target[name] !== undefined)
    .map((name) => `${name} ${target[name]}`)
    .join(', ')

/** The class name, or the amounts if the target has no class. */
export const targetText = (target: Target): string => target.className ?? ioText(target)
