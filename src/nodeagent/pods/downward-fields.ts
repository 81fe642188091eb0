// Formats fields of a pod and resources of its containers as text, for environment variables and downwardAPI volumes. Pure.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { parseQuantity } from '../../api/quantity.ts'

const FIELDS: Readonly<Record<string, (pod: Readonly<Pod>) => string | undefined>> = {
  'metadata.name': ({ metadata }) => metadata.name,
  'metadata.namespace': ({ metadata }) => metadata.namespace,
  'metadata.uid': ({ metadata }) => metadata.uid,
  'metadata.labels': ({ metadata }) => formatMap(metadata.labels),
  'metadata.annotations': ({ metadata }) => formatMap(metadata.annotations),
  'spec.nodeName': ({ spec }) => spec?.nodeName,
  'spec.serviceAccountName': ({ spec }) => spec?.serviceAccountName,
  'status.hostIP': ({ status }) => status?.hostIP,
  'status.hostIPs': ({ status }) => joinAddresses(status?.hostIPs),
  'status.podIP': ({ status }) => status?.podIP,
  'status.podIPs': ({ status }) => joinAddresses(status?.podIPs),
}

/**
 * Returns a pod field as text. A map has one line `key="value"` for each entry. Throws an Error for a field that is not
 * supported.
 */
export function formatPodField(pod: Readonly<Pod>, path: string): string {
  const match = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path)
  if (match) return pod.metadata[match[1] as 'labels' | 'annotations']?.[match[2]!] ?? ''
  if (!Object.hasOwn(FIELDS, path)) throw new Error(`the field ${path} is not supported by this node agent`)
  return FIELDS[path]!(pod) ?? ''
}

const formatMap = (entries: Readonly<Record<string, string>> = {}): string =>
  Object.keys(entries)
    .sort()
    .map((key) => `${key}=${JSON.stringify(entries[key])}`)
    .join('\n')

const joinAddresses = (addresses: readonly { readonly ip: string }[] = []): string =>
  addresses.map(({ ip }) => ip).join(',')

/** The node's resources, which `formatResourceField` returns as the limits of a container without limits. */
export interface NodeResources {
  readonly cpus: number
  readonly memoryBytes: number
}

export interface ResourceReference {
  readonly containerName?: string
  readonly resource: string
  readonly divisor?: string | number
}

/** Returns a request or limit divided by the divisor and rounded up. Throws an Error for an unknown container or resource. */
export function formatResourceField(
  { spec }: Readonly<Pod>,
  { containerName, resource, divisor = '1' }: ResourceReference,
  node: NodeResources,
): string {
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]
  const container = containers.find(({ name }) => name === containerName)
  if (!container) throw new Error(`resourceFieldRef: the pod has no container ${JSON.stringify(containerName)}`)
  const match = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/.exec(resource)
  if (!match) throw new Error(`the resource ${resource} is not supported by this node agent`)
  const [kind, name] = [match[1] as 'limits' | 'requests', match[2]!]
  const amount = container.resources?.[kind]?.[name] ?? (kind === 'limits' ? limitOfNode(name, node) : 0)
  const divisorNanos = parseQuantity(divisor).nanos || parseQuantity(1).nanos
  const { nanos } = parseQuantity(amount)
  return String((nanos + divisorNanos - 1n) / divisorNanos)
}

const limitOfNode = (name: string, { cpus, memoryBytes }: NodeResources): number =>
  name === 'cpu' ? cpus : name === 'memory' ? memoryBytes : 0
