// Expands the manifests of Deployments, ReplicaSets, StatefulSets and Jobs to the pods and claims that their controllers create.
import { isRecord } from '../../../api/decode.ts'
import { UsageError } from '../../../base/usage-error.ts'
import type { Manifest } from '../../manifests/read-manifests.ts'

type Fields = Readonly<Record<string, unknown>>

const COUNT_FIELDS: Readonly<Record<string, string>> = {
  Deployment: 'replicas',
  ReplicaSet: 'replicas',
  StatefulSet: 'replicas',
  Job: 'parallelism',
}

export const WORKLOAD_KINDS = Object.keys(COUNT_FIELDS)

/** Bounds the pods of one workload, so that a mistyped count does not exhaust the memory. */
const REPLICAS_MAX = 100_000

/** Returns the pods and claims of a workload. A manifest of another kind is returned unchanged. */
export function expandWorkload(manifest: Manifest): readonly Manifest[] {
  const countField = COUNT_FIELDS[manifest.kind]
  if (countField === undefined) return [manifest]
  const spec = fieldsOf(manifest.value.spec)
  const count = spec[countField] ?? 1
  if (!Number.isSafeInteger(count) || (count as number) < 0 || (count as number) > REPLICAS_MAX)
    throw new UsageError(`${manifest.source}: spec.${countField} is not a number from 0 to ${REPLICAS_MAX}`)
  if (!isRecord(spec.template)) throw new UsageError(`${manifest.source}: the ${manifest.kind} has no spec.template`)
  return Array.from({ length: count as number }, (_, index) => expandReplica(manifest, index)).flat()
}

function expandReplica(manifest: Manifest, index: number): Manifest[] {
  const { name = '', namespace } = fieldsOf(manifest.value.metadata)
  const spec = fieldsOf(manifest.value.spec)
  const template = fieldsOf(spec.template)
  const podName = `${name}-${index}`
  const source = `${manifest.source}, replica ${index}`
  const createManifest = (
    kind: string,
    objectName: string,
    parts: { metadata?: unknown; spec?: unknown },
  ): Manifest => {
    const metadata = { ...fieldsOf(parts.metadata), name: objectName, ...(namespace ? { namespace } : {}) }
    return { source, apiVersion: 'v1', kind, value: { metadata, spec: parts.spec } }
  }
  const claimTemplates = Array.isArray(spec.volumeClaimTemplates) ? spec.volumeClaimTemplates.map(fieldsOf) : []
  const claimNameOf = (claim: Fields) => `${fieldsOf(claim.metadata).name}-${podName}`
  const podSpec = fieldsOf(template.spec)
  const templateNames = claimTemplates.map((claim) => fieldsOf(claim.metadata).name)
  const volumes = [
    ...(Array.isArray(podSpec.volumes) ? podSpec.volumes : []).filter(
      (volume) => !templateNames.includes(fieldsOf(volume).name),
    ),
    ...claimTemplates.map((claim) => ({
      name: fieldsOf(claim.metadata).name,
      persistentVolumeClaim: { claimName: claimNameOf(claim) },
    })),
  ]
  return [
    ...claimTemplates.map((claim) => createManifest('PersistentVolumeClaim', claimNameOf(claim), claim)),
    createManifest('Pod', podName, { metadata: template.metadata, spec: { ...podSpec, volumes } }),
  ]
}

const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {})
