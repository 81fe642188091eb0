// Checks the volume that a plugin returned against the request, and converts it. Pure. A size below the request is handled
// by the controllers, as for every provisioner.
import { inspect } from 'node:util'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { type VolumeSourceName, volumeSources } from '../../../api/kinds/volume/volume-source-rules.ts'
import { labelValueProblems, qualifiedNameProblems } from '../../../api/names.ts'
import { formatQuantity, quantityFromBytes, quantityToBytes } from '../../../api/quantity.ts'
import type { LabelSelectorObject } from '../../../api/selectors.ts'
import type { NewVolume } from '../provisioner.ts'
import type { ExistingVolume, MadeVolume, ProvisionRequest, VolumeSources } from './contract.ts'
import { satisfiesSelector } from './read-selector.ts'
import { quoted, shortened } from './wording.ts'

export interface Wanted {
  readonly request: Pick<ProvisionRequest, 'sizeLimitBytes' | 'allowedTopologies' | 'mountOptions'>
  readonly selector: LabelSelectorObject | undefined
  readonly secrets: readonly string[]
}

export type CheckedMade =
  | { readonly is: 'right'; readonly volume: NewVolume }
  | { readonly is: 'wrong'; readonly because: string }

export function checkMade(made: MadeVolume, { request, selector, secrets }: Wanted): CheckedMade {
  const wrong = (because: string): CheckedMade => ({ is: 'wrong', because })
  const shape = shapeProblem(made)
  if (shape) return wrong(shape)

  const { labels = {}, annotations = {}, reachableFrom, mountOptions = [] } = made
  if (!satisfiesSelector(selector, labels)) {
    return wrong(`its labels ${JSON.stringify(labels)} do not satisfy the claim's selector`)
  }
  if (request.sizeLimitBytes !== undefined && BigInt(made.sizeBytes) > request.sizeLimitBytes) {
    return wrong(`it holds ${made.sizeBytes} bytes, and the claim's limit is ${request.sizeLimitBytes}`)
  }
  if (!isWithin(reachableFrom, request.allowedTopologies)) {
    return wrong("it can be reached from where the class's allowedTopologies do not allow volumes")
  }
  const reserved = Object.keys(annotations).filter((key) => RESERVED_ANNOTATIONS.test(key))
  if (reserved.length > 0) return wrong(`its annotations ${quoted(reserved)} are not a provisioner's to set`)
  const visible = JSON.stringify([labels, annotations, made.source, mountOptions, reachableFrom])
  if (secrets.some((secret) => visible.includes(JSON.stringify(secret).slice(1, -1)))) {
    return wrong('it shows a parameter that is declared sensitive, and anyone may read a volume')
  }
  return {
    is: 'right',
    volume: {
      labels,
      annotations,
      spec: {
        ...(made.source as object),
        capacity: { storage: formatQuantity(quantityFromBytes(made.sizeBytes)) },
        ...(mountOptions.length > 0 ? { mountOptions: [...request.mountOptions, ...mountOptions] } : {}),
        ...(reachableFrom ? { nodeAffinity: affinityOf(reachableFrom) } : {}),
      },
    },
  }
}

/** A volume as plugins see it. */
export function existingVolume({ metadata, spec = {} }: Readonly<PersistentVolume>): ExistingVolume {
  const { name = '', labels = {}, annotations = {} } = metadata
  const source = Object.fromEntries(volumeSources(spec).map((kind) => [kind, spec[kind]]))
  const sizeBytes = quantityToBytes(spec.capacity?.storage ?? '0')
  return { name, source: source as Partial<VolumeSources>, sizeBytes, labels, annotations }
}

/** Whether it says anything about what was made. */
export const namesItsSource = (made: unknown): made is MadeVolume =>
  isRecord(made) && isRecord(made.source) && Object.values(made.source).some((source) => source !== undefined)

/** What was made and breaks the rules, for its deletion: whatever of it makes no sense is left out. */
export const asFarAsReadable = (made: MadeVolume, name: string): ExistingVolume => ({
  name,
  source: made.source,
  sizeBytes: isSize(made.sizeBytes) ? BigInt(made.sizeBytes) : 0n,
  labels: isRecord(made.labels) ? made.labels : {},
  annotations: isRecord(made.annotations) ? made.annotations : {},
})

// Plugins may be written in JavaScript, so the compiler has not checked what they return.
function shapeProblem(made: MadeVolume): string | undefined {
  const { sizeBytes, source, labels = {}, annotations = {}, reachableFrom = [], mountOptions = [] } = made
  if (!isSize(sizeBytes)) return `its sizeBytes is ${shown(sizeBytes)}, and must be a whole number above 0`
  for (const [what, value] of Object.entries({ labels, annotations })) {
    if (!isRecord(value)) return `its ${what} is ${shown(value)}, and must be an object`
  }
  if (!Array.isArray(mountOptions)) return `its mountOptions is ${shown(mountOptions)}, and must be a list`
  if (!Array.isArray(reachableFrom) || !reachableFrom.every(isRecord)) {
    return `its reachableFrom is ${shown(reachableFrom)}, and must be a list of objects`
  }
  const kinds = Object.keys(source).filter((kind) => source[kind as keyof VolumeSources] !== undefined)
  if (kinds.length !== 1) return `it has ${kinds.length} sources (${quoted(kinds)}), and must have one`
  if (!Object.hasOwn(SOURCES, kinds[0]!)) {
    return `its source ${quoted(kinds)} is none of ${quoted(Object.keys(SOURCES))}`
  }
  for (const [key, value] of [...Object.entries(labels), ...reachableFrom.flatMap((term) => Object.entries(term))]) {
    const problems =
      typeof value === 'string' ? [...qualifiedNameProblems(key), ...labelValueProblems(value)] : ['it is no text']
    if (problems.length > 0) return `its label ${quoted([key])} cannot be: ${problems.join('; ')}`
  }
  const texts = [...Object.values(annotations), ...mountOptions]
  if (texts.some((text) => typeof text !== 'string')) return 'its annotations and mount options must be text'
  return undefined
}

const isSize = (value: unknown): value is bigint | number =>
  (typeof value === 'bigint' || Number.isSafeInteger(value)) && (value as bigint | number) > 0

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const shown = (value: unknown): string => shortened(inspect(value, { depth: 1 }))

const SOURCES: Readonly<Record<keyof VolumeSources, VolumeSourceName>> = {
  hostPath: 'hostPath',
  local: 'local',
  nfs: 'nfs',
  iscsi: 'iscsi',
  fc: 'fc',
  flexVolume: 'flexVolume',
  csi: 'csi',
}

/** Those of the lifecycle and of the API; a plugin uses its own domain. */
const RESERVED_ANNOTATIONS = /^([^/]*\.)?kubernetes\.io\/|^([^/]*\.)?k8s\.io\//

function isWithin(
  reachableFrom: MadeVolume['reachableFrom'] = [],
  allowed: ProvisionRequest['allowedTopologies'],
): boolean {
  if (allowed.length === 0) return true
  if (reachableFrom.length === 0) return false
  return reachableFrom.every((place) =>
    allowed.some((term) => Object.entries(term).every(([key, values]) => values.includes(place[key] ?? ''))),
  )
}

function affinityOf(reachableFrom: NonNullable<MadeVolume['reachableFrom']>) {
  return {
    required: {
      nodeSelectorTerms: reachableFrom.map((place) => ({
        matchExpressions: Object.entries(place).map(([key, value]) => ({
          key,
          operator: 'In' as const,
          values: [value],
        })),
      })),
    },
  }
}
