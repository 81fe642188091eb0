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
import { finalError, infeasibleError, notReadyError } from './preparation-error.ts'

/** What a claim requests besides its size; feature gates enable each part. */
export interface RequestedAttributes {
  readonly className: string | undefined
  /** As requested: a count, and bytes/s. */
  readonly iops: string | undefined
  readonly throughput: string | undefined
}

export function requestedAttributes(
  { spec }: Readonly<PersistentVolumeClaim>,
  gates: FeatureGates,
): RequestedAttributes {
  const requests = gates.enabled('VolumeProvisionedIO') ? spec?.resources?.requests : undefined
  const throughput = amountOf(requests, 'throughput')
  return {
    className: (gates.enabled('VolumeAttributesClass') && spec?.volumeAttributesClassName) || undefined,
    iops: amountOf(requests, 'iops'),
    throughput: throughput === undefined ? undefined : normalizeThroughput(throughput),
  }
}

export type AttributesClassCache = Pick<Cache<VolumeAttributesClass>, 'get' | 'isServed' | 'lastEventAgeMs'>

export interface AttributesDeps {
  readonly client: Client
  /** Created when the first claim names a class: the server may not serve the kind, or not let us read it. */
  attributesClasses(): AttributesClassCache
  readonly driverName: string
}

/** Throws a Refusal. */
export async function readMutableParameters(
  attributes: RequestedAttributes,
  deps: AttributesDeps,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  return composeParameters(
    attributes.className ? await readClassParameters(attributes.className, deps, signal) : {},
    attributes,
  )
}

async function readClassParameters(name: string, deps: AttributesDeps, signal: AbortSignal): Promise<Parameters> {
  const { driverName } = deps
  const attributesClass = cachedClass(name, deps.attributesClasses()) ?? (await readClass(name, deps, signal))
  if (attributesClass.driverName !== driverName) {
    throw finalError(
      `VAC ${name} referenced in PVC is for driver ${attributesClass.driverName} which does not match driver name ${driverName}`,
    )
  }
  return attributesClass.parameters ?? {}
}

/** Servers send a bookmark at least every minute. */
const WATCH_SILENCE_MS_MAX = 120_000

/**
 * A class is immutable and exists while a claim names it, so the cache can be used. Read from the server if the cache is
 * behind, because the class may have been recreated, or if the server no longer serves classes.
 */
function cachedClass(name: string, classes: AttributesClassCache): Readonly<VolumeAttributesClass> | undefined {
  if (!classes.isServed || classes.lastEventAgeMs() > WATCH_SILENCE_MS_MAX) return undefined
  const attributesClass = classes.get({ name })
  return attributesClass?.metadata.deletionTimestamp === undefined ? attributesClass : undefined
}

const readClass = (name: string, { client }: AttributesDeps, signal: AbortSignal) =>
  client.get(volumeAttributesClassKind, { name }, { signal }).catch((error) => {
    if (!(error instanceof ApiError)) throw error
    throw notReadyError(`VolumeAttributesClass "${name}" of the claim could not be read: ${error.message}`)
  })

/** The class parameters, and the claim's own requests in the units of drivers: a count, and whole MiB/s. */
export function composeParameters(
  classParameters: Parameters,
  attributes: Omit<RequestedAttributes, 'className'>,
): Record<string, string> {
  const parameters: Record<string, string> = { ...classParameters }
  for (const attribute of IO_ATTRIBUTES) {
    const requested = attributes[attribute.key]
    if (requested === undefined) continue
    if (!isQuantity(requested) || quantitySign(requested) <= 0 || !quantityIsInteger(requested)) {
      throw infeasibleError(`the claim requests ${requested} ${attribute.key}: it must be a whole number above zero`)
    }
    const driverValue = attribute.toDriverUnit(requested)
    const classValue = Object.hasOwn(classParameters, attribute.key) ? classParameters[attribute.key]! : undefined
    if (classValue === undefined) parameters[attribute.key] = driverValue
    else if (attribute.parseParameter(classValue) !== driverValue) {
      throw infeasibleError(
        `the claim requests ${requested} ${attribute.key}, but its VolumeAttributesClass says ${attribute.key} "${classValue}": ` +
          `remove one of them, or make both the same. Nothing was sent to the driver`,
      )
    }
  }
  const bytes = Object.entries(parameters).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  )
  if (bytes > MAP_BYTES_MAX) {
    throw infeasibleError(
      `the attributes of the volume are ${bytes} bytes, and a CSI driver takes at most ${MAP_BYTES_MAX}: use a VolumeAttributesClass with fewer parameters`,
    )
  }
  return parameters
}

/** The protocol's limit for a map. */
const MAP_BYTES_MAX = 4_096
const BYTES_PER_MIB = 1_048_576n

const toMebibytes = (bytesPerSecond: string): string =>
  String((quantityToBytes(bytesPerSecond) + BYTES_PER_MIB - 1n) / BYTES_PER_MIB)

interface IoAttribute {
  readonly key: 'iops' | 'throughput'
  /** The requested amount, in the unit of the driver. */
  toDriverUnit(match: string): string
  /** The value of a class parameter in the same unit; undefined if it cannot be parsed. */
  parseParameter(text: string): string | undefined
}

const IO_ATTRIBUTES: readonly IoAttribute[] = [
  {
    key: 'iops',
    toDriverUnit: (match) => String(quantityToBytes(match)),
    parseParameter: (text) => (isQuantity(text) ? String(quantityToBytes(text)) : undefined),
  },
  {
    key: 'throughput',
    toDriverUnit: toMebibytes,
    // 100, 100Mi, 100MiB, 100MiB/s and 100 MB/s all occur in practice.
    parseParameter(text) {
      const match = /^\s*([0-9.]+)\s*([kKMGTP]i?)?B?(?:\/s)?\s*$/.exec(text)
      const quantity = match && `${match[1]}${match[2] === 'K' ? 'k' : (match[2] ?? '')}`
      return quantity && isQuantity(quantity) ? toMebibytes(normalizeThroughput(quantity)) : undefined
    },
  },
]

/** Attributes that a storage class sets at creation; attributes from other sources replace them. */
const ON_CREATE = { iops: 'provisioned-iops-on-create', throughput: 'provisioned-throughput-on-create' } as const

export function omitOverridden(parameters: Parameters, mutable: Parameters): Record<string, string> {
  const overridden = IO_ATTRIBUTES.filter(({ key }) => Object.hasOwn(mutable, key)).map(
    ({ key }): string => ON_CREATE[key],
  )
  return Object.fromEntries(Object.entries(parameters).filter(([key]) => !overridden.includes(key)))
}
