// Builds the documents of aggregated discovery, one for /api and one for /apis. They list the same resources as
// legacy-discovery.ts.
import type { Resource, Resources } from '../resources.ts'
import { resourcesOf } from './legacy-discovery.ts'
import { subresourcesOf, verbsOf } from './subresources.ts'

export const AGGREGATED_GROUP = 'apidiscovery.k8s.io'
export const AGGREGATED_KIND = 'APIGroupDiscoveryList'
export const AGGREGATED_VERSIONS = ['v2', 'v2beta1'] as const
export type AggregatedVersion = (typeof AGGREGATED_VERSIONS)[number]

/** Returns the document of the core group if `isCore` is true, and of all other groups if it is false. */
export const groupDiscoveryList = (
  resources: Resources,
  version: AggregatedVersion,
  { isCore }: { isCore: boolean },
) => ({
  kind: AGGREGATED_KIND,
  apiVersion: `${AGGREGATED_GROUP}/${version}`,
  metadata: {},
  items: resources.groups
    .filter(({ group }) => (group === '') === isCore)
    .map(({ group, versions }) => ({
      metadata: group ? { name: group } : {},
      versions: versions.map((servedVersion) => ({
        version: servedVersion,
        resources: resourcesOf(resources, group, servedVersion).map(resourceEntry),
        freshness: 'Current',
      })),
    })),
})

function resourceEntry({ kind, group, version }: Resource) {
  const subresources = subresourcesOf(kind).map(({ name, verbs, body }) => ({
    subresource: name,
    responseKind: body ?? { group, version, kind: kind.kind },
    verbs,
  }))
  return {
    resource: kind.plural,
    responseKind: { group, version, kind: kind.kind },
    scope: kind.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: kind.singular,
    verbs: verbsOf(kind),
    ...(kind.shortNames ? { shortNames: kind.shortNames } : {}),
    ...(kind.categories ? { categories: kind.categories } : {}),
    ...(subresources.length > 0 ? { subresources } : {}),
  }
}
