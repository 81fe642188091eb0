// The attributes a volume is made with: those of the claim's attributes class, and the iops and throughput the claim
// asks for itself, as the mutable parameters of CreateVolume. One value per key, or nothing is sent.

import type { FeatureGates } from '../../../api/feature-gates.ts'
import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import type { VolumeAttributesClass } from '../../../api/kinds/attributes-class/attributes-class-schema.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { amountOf } from '../../../api/kinds/shared/provisioned-io.ts'
import { isQuantity, quantityIsInteger, quantitySign, quantityToBytes } from '../../../api/quantity.ts'
import { ApiError } from '../../../api/status-error.ts'
import { normalizeThroughput } from '../../../api/throughput.ts'
import type { Client } from '../../../client/index.ts'
import type { Cache } from '../../../runtime/index.ts'
import type { Parameters } from './parameters.ts'
import { infeasible, notNow, refused } from './refusal.ts'

/** What a claim wants of its volume beside size; the gates say what of it counts. */
export interface WantedAttributes {
  readonly className: string | undefined
  /** As the claim asks for it: a count, and bytes/s. */
  readonly iops: string | undefined
  readonly throughput: string | undefined
}

export function wantedAttributes({ spec }: Readonly<PersistentVolumeClaim>, gates: FeatureGates): WantedAttributes {
  const requests = gates.enabled('VolumeProvisionedIO') ? spec?.resources?.requests : undefined
  const throughput = amountOf(requests, 'throughput')
  return {
    className: (gates.enabled('VolumeAttributesClass') && spec?.volumeAttributesClassName) || undefined,
    iops: amountOf(requests, 'iops'),
    throughput: throughput === undefined ? undefined : normalizeThroughput(throughput),
  }
}

export type WatchedClasses = Pick<Cache<VolumeAttributesClass>, 'get' | 'isServed' | 'lastEventAgeMs'>

export interface AttributesDeps {
  readonly client: Client
  /** Asked for when a claim names a class, and not before: a server may serve none, or let us see none. */
  attributesClasses(): WatchedClasses
  readonly driverName: string
}

/** Throws a Refusal. */
export async function mutableParameters(
  wanted: WantedAttributes,
  deps: AttributesDeps,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  return composed(wanted.className ? await parametersOfClass(wanted.className, deps, signal) : {}, wanted)
}

async function parametersOfClass(name: string, deps: AttributesDeps, signal: AbortSignal): Promise<Parameters> {
  const { driverName } = deps
  const attributesClass = watchedClass(name, deps.attributesClasses()) ?? (await readClass(name, deps, signal))
  if (attributesClass.driverName !== driverName) {
    throw refused(
      `VAC ${name} referenced in PVC is for driver ${attributesClass.driverName} which does not match driver name ${driverName}`,
    )
  }
  return attributesClass.parameters ?? {}
}

/** Servers say at least every minute that a watch is alive. */
const SILENT_MS = 120_000

/**
 * A class never changes while it exists, and exists while a claim names it, so what the watch shows holds. Not where it
 * may be another one of that name by now, and not where the server has stopped serving classes.
 */
function watchedClass(name: string, classes: WatchedClasses): Readonly<VolumeAttributesClass> | undefined {
  if (!classes.isServed || classes.lastEventAgeMs() > SILENT_MS) return undefined
  const found = classes.get({ name })
  return found?.metadata.deletionTimestamp === undefined ? found : undefined
}

const readClass = (name: string, { client }: AttributesDeps, signal: AbortSignal) =>
  client.get(volumeAttributesClassKind, { name }, { signal }).catch((error) => {
    if (!(error instanceof ApiError)) throw error
    throw notNow(`VolumeAttributesClass "${name}" of the claim could not be read: ${error.message}`)
  })

/** Class parameters as they are, and the claim's own requests in the words drivers read: a count, and whole MiB/s. */
export function composed(ofClass: Parameters, wanted: Omit<WantedAttributes, 'className'>): Record<string, string> {
  const parameters: Record<string, string> = { ...ofClass }
  for (const io of IO) {
    const asked = wanted[io.key]
    if (asked === undefined) continue
    if (!isQuantity(asked) || quantitySign(asked) <= 0 || !quantityIsInteger(asked)) {
      throw infeasible(`the claim requests ${asked} ${io.key}: it must be a whole number above zero`)
    }
    const sent = io.sent(asked)
    const classValue = Object.hasOwn(ofClass, io.key) ? ofClass[io.key]! : undefined
    if (classValue === undefined) parameters[io.key] = sent
    else if (io.meaning(classValue) !== sent) {
      throw infeasible(
        `the claim requests ${asked} ${io.key}, but its VolumeAttributesClass says ${io.key} "${classValue}": ` +
          `remove one of them, or make both the same. Nothing was sent to the driver`,
      )
    }
  }
  const bytes = Object.entries(parameters).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  )
  if (bytes > MAP_BYTES_MAX) {
    throw infeasible(
      `the attributes of the volume are ${bytes} bytes, and a CSI driver takes at most ${MAP_BYTES_MAX}: use a VolumeAttributesClass with fewer parameters`,
    )
  }
  return parameters
}

/** The protocol's limit for a map. */
const MAP_BYTES_MAX = 4_096
const BYTES_PER_MIB = 1_048_576n

const wholeMebibytes = (bytesPerSecond: string): string =>
  String((quantityToBytes(bytesPerSecond) + BYTES_PER_MIB - 1n) / BYTES_PER_MIB)

interface IoAttribute {
  readonly key: 'iops' | 'throughput'
  /** The claim's amount, as the driver is told. */
  sent(amount: string): string
  /** What a class's own text comes to in the same words; undefined when it cannot be understood. */
  meaning(text: string): string | undefined
}

const IO: readonly IoAttribute[] = [
  {
    key: 'iops',
    sent: (amount) => String(quantityToBytes(amount)),
    meaning: (text) => (isQuantity(text) ? String(quantityToBytes(text)) : undefined),
  },
  {
    key: 'throughput',
    sent: wholeMebibytes,
    // 100, 100Mi, 100MiB, 100MiB/s and 100 MB/s are all written in the wild.
    meaning(text) {
      const amount = /^\s*([0-9.]+)\s*([kKMGTP]i?)?B?(?:\/s)?\s*$/.exec(text)
      const quantity = amount && `${amount[1]}${amount[2] === 'K' ? 'k' : (amount[2] ?? '')}`
      return quantity && isQuantity(quantity) ? wholeMebibytes(normalizeThroughput(quantity)) : undefined
    },
  },
]

/** What a class sets at creation only; whatever else names the attribute wins, and then the driver is not told. */
const ON_CREATE = { iops: 'provisioned-iops-on-create', throughput: 'provisioned-throughput-on-create' } as const

export function withoutOverridden(parameters: Parameters, mutable: Parameters): Record<string, string> {
  const overridden = IO.filter(({ key }) => Object.hasOwn(mutable, key)).map(({ key }): string => ON_CREATE[key])
  return Object.fromEntries(Object.entries(parameters).filter(([key]) => !overridden.includes(key)))
}
