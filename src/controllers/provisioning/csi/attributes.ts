// The mutable parameters of CreateVolume: the parameters of the claim's attributes class, and the iops and throughput that
// the claim itself requests. Conflicting values for one key are rejected.

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

/** What a claim requests besides its size; feature gates enable each part. */
export interface WantedAttributes {
  readonly className: string | undefined
  /** As requested: a count, and bytes/s. */
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
  /** Created when the first claim names a class: the server may not serve the kind, or not let us read it. */
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

/** Servers send a bookmark at least every minute. */
const SILENT_MS = 120_000

/**
 * A class is immutable and exists while a claim names it, so the cache can be used. Read from the server if the cache is
 * behind, because the class may have been recreated, or if the server no longer serves classes.
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

/** The class parameters, and the claim's own requests in the units of drivers: a count, and whole MiB/s. */
export function composed(ofClass: Parameters, wanted: Omit<WantedAttributes, 'className'>): Record<string, string> {
  const parameters: Record<string, string> = { ...ofClass }
  for (const io of IO) {
    const requested = wanted[io.key]
    if (requested === undefined) continue
    if (!isQuantity(requested) || quantitySign(requested) <= 0 || !quantityIsInteger(requested)) {
      throw infeasible(`the claim requests ${requested} ${io.key}: it must be a whole number above zero`)
    }
    const sent = io.sent(requested)
    const classValue = Object.hasOwn(ofClass, io.key) ? ofClass[io.key]! : undefined
    if (classValue === undefined) parameters[io.key] = sent
    else if (io.meaning(classValue) !== sent) {
      throw infeasible(
        `the claim requests ${requested} ${io.key}, but its VolumeAttributesClass says ${io.key} "${classValue}": ` +
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
  /** The requested amount, in the unit of the driver. */
  sent(amount: string): string
  /** The value of a class parameter in the same unit; undefined if it cannot be parsed. */
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
    // 100, 100Mi, 100MiB, 100MiB/s and 100 MB/s all occur in practice.
    meaning(text) {
      const amount = /^\s*([0-9.]+)\s*([kKMGTP]i?)?B?(?:\/s)?\s*$/.exec(text)
      const quantity = amount && `${amount[1]}${amount[2] === 'K' ? 'k' : (amount[2] ?? '')}`
      return quantity && isQuantity(quantity) ? wholeMebibytes(normalizeThroughput(quantity)) : undefined
    },
  },
]

/** Attributes that a storage class sets at creation; attributes from other sources replace them. */
const ON_CREATE = { iops: 'provisioned-iops-on-create', throughput: 'provisioned-throughput-on-create' } as const

export function withoutOverridden(parameters: Parameters, mutable: Parameters): Record<string, string> {
  const overridden = IO.filter(({ key }) => Object.hasOwn(mutable, key)).map(({ key }): string => ON_CREATE[key])
  return Object.fromEntries(Object.entries(parameters).filter(([key]) => !overridden.includes(key)))
}
