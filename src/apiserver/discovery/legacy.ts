// The original discovery documents: versions, groups, and the resources of each group version, which take one request per
// group version. aggregated.ts has the same content in two documents.
import type { Resource, Resources } from '../resources.ts'
import { subresourcesOf, verbsOf } from './subresources.ts'

/** `/api`. `serverAddress` is the address by which the client reached this server. */
export const apiVersions = ({ groups }: Resources, serverAddress: string) => ({
  kind: 'APIVersions',
  versions: groups.find(({ group }) => group === '')?.versions ?? [],
  serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
})

/** `/apis`. */
export const apiGroupList = ({ groups }: Resources) => ({
  kind: 'APIGroupList',
  apiVersion: 'v1',
  groups: groups.filter(({ group }) => group !== '').map(groupEntry),
})

/** `/apis/{group}`. */
export function apiGroup({ groups }: Resources, name: string) {
  const found = groups.find(({ group }) => group === name && group !== '')
  return found && { kind: 'APIGroup', apiVersion: 'v1', ...groupEntry(found) }
}

/** `/api/v1` and `/apis/{group}/{version}`. */
export function apiResourceList(resources: Resources, group: string, version: string) {
  const served = resourcesOf(resources, group, version)
  if (served.length === 0) return undefined
  return {
    kind: 'APIResourceList',
    ...(group ? { apiVersion: 'v1' } : {}), // as in Kubernetes, the core list has no apiVersion
    groupVersion: group ? `${group}/${version}` : version,
    resources: served.flatMap(resourceEntries),
  }
}

/** The resources of one group version, by name. */
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
