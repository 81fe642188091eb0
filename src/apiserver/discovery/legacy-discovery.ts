// Builds the documents of legacy discovery: versions, groups, and one list of resources per group version.
// aggregated-discovery.ts has the same content in two documents.
import type { Resource, Resources } from '../resources.ts'
import { subresourcesOf, verbsOf } from './subresources.ts'

/** Builds the document of `/api`. `serverAddress` is the address that the client used. */
export const apiVersions = ({ groups }: Resources, serverAddress: string) => ({
  kind: 'APIVersions',
  versions: groups.find(({ group }) => group === '')?.versions ?? [],
  serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
})

/** Builds the document of `/apis`. */
export const apiGroupList = ({ groups }: Resources) => ({
  kind: 'APIGroupList',
  apiVersion: 'v1',
  groups: groups.filter(({ group }) => group !== '').map(groupEntry),
})

/** Builds the document of `/apis/{group}`. */
export function apiGroup({ groups }: Resources, name: string) {
  const entry = groups.find(({ group }) => group === name && group !== '')
  return entry && { kind: 'APIGroup', apiVersion: 'v1', ...groupEntry(entry) }
}

/** Builds the document of `/api/v1` or `/apis/{group}/{version}`. */
export function apiResourceList(resources: Resources, group: string, version: string) {
  const servedResources = resourcesOf(resources, group, version)
  if (servedResources.length === 0) return undefined
  return {
    kind: 'APIResourceList',
    ...(group ? { apiVersion: 'v1' } : {}), // as in Kubernetes, the core list has no apiVersion
    groupVersion: group ? `${group}/${version}` : version,
    resources: servedResources.flatMap(resourceEntries),
  }
}

/** Returns the resources of one group version, sorted by name. */
export const resourcesOf = ({ all }: Resources, group: string, version: string): readonly Resource[] =>
  all
    .filter((resource) => resource.group === group && resource.version === version)
    .sort((a, b) => (a.plural < b.plural ? -1 : 1))

function groupEntry({ group, versions }: Resources['groups'][number]) {
  const entries = versions.map((version) => ({ groupVersion: `${group}/${version}`, version }))
  return { name: group, versions: entries, preferredVersion: entries[0] }
}

function resourceEntries({ kind }: Resource) {
  const { namespaced } = kind
  return [
    {
      name: kind.plural,
      singularName: kind.singular,
      namespaced,
      kind: kind.kind,
      verbs: verbsOf(kind),
      ...(kind.shortNames ? { shortNames: kind.shortNames } : {}),
      ...(kind.categories ? { categories: kind.categories } : {}),
    },
    ...subresourcesOf(kind).map(({ name, verbs, body }) => ({
      name: `${kind.plural}/${name}`,
      singularName: '',
      namespaced,
      ...(body?.group ? { group: body.group, version: body.version } : {}),
      kind: body?.kind ?? kind.kind,
      verbs,
    })),
  ]
}
