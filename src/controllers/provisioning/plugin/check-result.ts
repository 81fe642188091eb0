// Checks the volume that a plugin returned against the request and converts it to a new volume, and converts existing volumes
// to the form that plugins receive. Pure. check-volume.ts checks the minimum size, as for every provisioner.
import { inspect } from 'node:util'
import { isRecord } from '../../../api/decode.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { type VolumeSourceName, volumeSources } from '../../../api/kinds/volume/volume-source-rules.ts'
import { labelValueProblems, qualifiedNameProblems } from '../../../api/names.ts'
import { formatQuantity, quantityFromBytes, quantityToBytes } from '../../../api/quantity.ts'
import type { LabelSelectorObject } from '../../../api/selectors.ts'
import type { NewVolume } from '../provisioner.ts'
import type { ExistingVolume, ProvisionedVolume, ProvisionRequest, VolumeSources } from './contract.ts'
import { satisfiesSelector } from './match-selector.ts'
import { quoteNames, truncate } from './message-text.ts'

export interface ResultExpectations {
  readonly request: Pick<ProvisionRequest, 'sizeLimitBytes' | 'allowedTopologies' | 'mountOptions'>
  readonly selector: LabelSelectorObject | undefined
  readonly secrets: readonly string[]
}

export type CheckedResult =
  | { readonly is: 'valid'; readonly volume: NewVolume }
  | { readonly is: 'invalid'; readonly message: string }

export function checkResult(
  result: ProvisionedVolume,
  { request, selector, secrets }: ResultExpectations,
): CheckedResult {
  const invalidResult = (message: string): CheckedResult => ({ is: 'invalid', message })
  const typeProblem = findTypeProblem(result)
  if (typeProblem) return invalidResult(typeProblem)

  const { labels = {}, annotations = {}, reachableFrom, mountOptions = [] } = result
  if (!satisfiesSelector(selector, labels)) {
    return invalidResult(`its labels ${JSON.stringify(labels)} do not satisfy the claim's selector`)
  }
  if (request.sizeLimitBytes !== undefined && BigInt(result.sizeBytes) > request.sizeLimitBytes) {
    return invalidResult(`it has ${result.sizeBytes} bytes, but the claim's limit is ${request.sizeLimitBytes}`)
  }
  if (!isAllowedTopology(reachableFrom, request.allowedTopologies)) {
    return invalidResult("it is reachable from nodes outside of the class's allowedTopologies")
  }
  const reservedKeys = Object.keys(annotations).filter((key) => RESERVED_ANNOTATIONS.test(key))
  if (reservedKeys.length > 0)
    return invalidResult(`its annotations ${quoteNames(reservedKeys)} are reserved for Kubernetes`)
  const text = JSON.stringify([labels, annotations, result.source, mountOptions, reachableFrom])
  if (secrets.some((secret) => text.includes(JSON.stringify(secret).slice(1, -1)))) {
    return invalidResult(
      'it contains the value of a sensitive parameter, which every user who can read volumes could read',
    )
  }
  return {
    is: 'valid',
    volume: {
      labels,
      annotations,
      spec: {
        ...(result.source as object),
        capacity: { storage: formatQuantity(quantityFromBytes(result.sizeBytes)) },
        ...(mountOptions.length > 0 ? { mountOptions: [...request.mountOptions, ...mountOptions] } : {}),
        ...(reachableFrom ? { nodeAffinity: nodeAffinityOf(reachableFrom) } : {}),
      },
    },
  }
}

/** Converts a PersistentVolume to the form that plugins receive. */
export function toExistingVolume({ metadata, spec = {} }: Readonly<PersistentVolume>): ExistingVolume {
  const { name = '', labels = {}, annotations = {} } = metadata
  const source = Object.fromEntries(volumeSources(spec).map((kind) => [kind, spec[kind]]))
  const sizeBytes = quantityToBytes(spec.capacity?.storage ?? '0')
  return { name, source: source as Partial<VolumeSources>, sizeBytes, labels, annotations }
}

/** Whether the result identifies a volume. */
export const hasSource = (result: unknown): result is ProvisionedVolume =>
  isRecord(result) && isRecord(result.source) && Object.values(result.source).some((source) => source !== undefined)

/** Converts an invalid result to the argument of `delete`. Fields of a wrong type are empty or 0. */
export const toDeletableVolume = (result: ProvisionedVolume, name: string): ExistingVolume => ({
  name,
  source: result.source,
  sizeBytes: isSize(result.sizeBytes) ? BigInt(result.sizeBytes) : 0n,
  labels: isRecord(result.labels) ? result.labels : {},
  annotations: isRecord(result.annotations) ? result.annotations : {},
})

/** Checks the types of the fields, because plugins may be written in JavaScript. */
function findTypeProblem(result: ProvisionedVolume): string | undefined {
  const { sizeBytes, source, labels = {}, annotations = {}, reachableFrom = [], mountOptions = [] } = result
  if (!isSize(sizeBytes)) return `its sizeBytes is ${inspectShort(sizeBytes)}, but must be a positive integer`
  for (const [field, value] of Object.entries({ labels, annotations })) {
    if (!isRecord(value)) return `its ${field} is ${inspectShort(value)}, but must be an object`
  }
  if (!Array.isArray(mountOptions)) return `its mountOptions is ${inspectShort(mountOptions)}, but must be an array`
  if (!Array.isArray(reachableFrom) || !reachableFrom.every(isRecord)) {
    return `its reachableFrom is ${inspectShort(reachableFrom)}, but must be an array of objects`
  }
  const kinds = Object.keys(source).filter((kind) => source[kind as keyof VolumeSources] !== undefined)
  if (kinds.length !== 1) return `it has ${kinds.length} sources (${quoteNames(kinds)}), but must have one`
  if (!Object.hasOwn(SOURCES, kinds[0]!)) {
    return `its source ${quoteNames(kinds)} is not one of ${quoteNames(Object.keys(SOURCES))}`
  }
  for (const [key, value] of [...Object.entries(labels), ...reachableFrom.flatMap((term) => Object.entries(term))]) {
    const problems =
      typeof value === 'string'
        ? [...qualifiedNameProblems(key), ...labelValueProblems(value)]
        : ['the value is not a string']
    if (problems.length > 0) return `its label ${quoteNames([key])} is invalid: ${problems.join('; ')}`
  }
  const texts = [...Object.values(annotations), ...mountOptions]
  if (texts.some((text) => typeof text !== 'string')) return 'its annotations and mount options must be strings'
  return undefined
}

const isSize = (value: unknown): value is bigint | number =>
  (typeof value === 'bigint' || Number.isSafeInteger(value)) && (value as bigint | number) > 0

const inspectShort = (value: unknown): string => truncate(inspect(value, { depth: 1 }))

const SOURCES: Readonly<Record<keyof VolumeSources, VolumeSourceName>> = {
  hostPath: 'hostPath',
  local: 'local',
  nfs: 'nfs',
  iscsi: 'iscsi',
  fc: 'fc',
  flexVolume: 'flexVolume',
  csi: 'csi',
}

/** Annotations that are reserved for Kubernetes. Plugins use their own domain. */
const RESERVED_ANNOTATIONS = /^([^/]*\.)?kubernetes\.io\/|^([^/]*\.)?k8s\.io\//

function isAllowedTopology(
  reachableFrom: ProvisionedVolume['reachableFrom'] = [],
  allowedTopologies: ProvisionRequest['allowedTopologies'],
): boolean {
  if (allowedTopologies.length === 0) return true
  if (reachableFrom.length === 0) return false
  return reachableFrom.every((topology) =>
    allowedTopologies.some((term) =>
      Object.entries(term).every(([key, values]) => values.includes(topology[key] ?? '')),
    ),
  )
}

function nodeAffinityOf(reachableFrom: NonNullable<ProvisionedVolume['reachableFrom']>) {
  return {
    required: {
      nodeSelectorTerms: reachableFrom.map((topology) => ({
        matchExpressions: Object.entries(topology).map(([key, value]) => ({
          key,
          operator: 'In' as const,
          values: [value],
        })),
      })),
    },
  }
}
