// What a volume should have beside its size: the attributes class, and iops and throughput of its own.
// Throughput is bytes/s here; how a driver is told is ../provisioning/csi/attributes.ts.
import { IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import { compareQuantities, isQuantity } from '../../api/quantity.ts'
import type { WantedAttributes } from '../provisioning/csi/attributes.ts'

export type Target = WantedAttributes
export type IoName = (typeof IO_RESOURCES)[number]

/** Keys and values as drivers take and keep them. */
export type Attributes = Readonly<Record<string, string>>

export const sameAmount = (a: string | undefined, b: string | undefined): boolean => {
  if (a === undefined || b === undefined) return a === b
  return isQuantity(a) && isQuantity(b) ? compareQuantities(a, b) === 0 : a === b
}

export const sameTarget = (a: Target, b: Target): boolean =>
  a.className === b.className && IO_RESOURCES.every((name) => sameAmount(a[name], b[name]))

/** `iops 500, throughput 50Mi`, of those that are asked for. */
export const ioText = (target: Target, names: readonly IoName[] = IO_RESOURCES): string =>
  names
    .filter((name) => target[name] !== undefined)
    .map((name) => `${name} ${target[name]}`)
    .join(', ')

/** By what people know it: the class, or the amounts. */
export const targetText = (target: Target): string => target.className ?? ioText(target)
